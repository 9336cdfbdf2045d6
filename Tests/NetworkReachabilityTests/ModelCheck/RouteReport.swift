internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// Parses the output of `ip -json`, which is a list of objects.
func objects(inJSON text: String) throws -> [[String: Any]] {
    guard let list = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]] else {
        throw OracleFailure(answer: text)
    }
    return list
}

/// The parsed output of `ip addr show`.
struct InterfaceReport {
    struct Interface {
        let index: UInt32
        let flags: Set<String>
        let state: String

        /// Whether the interface has a carrier. If the driver reports no state, the flags decide, as described in
        /// operstates.rst of the kernel.
        var hasCarrier: Bool {
            guard flags.contains("UP") else { return false }
            if state == "UNKNOWN" { return flags.contains("LOWER_UP") && !flags.contains("DORMANT") }
            return state == "UP"
        }

        /// Whether the state is about to change: it contradicts the flags. The flags show a carrier change immediately,
        /// and the kernel updates the state later.
        var isChanging: Bool {
            guard flags.contains("UP") else { return false }
            if state == "DOWN" { return flags.contains("LOWER_UP") }
            return state == "UP" && !flags.contains("LOWER_UP")
        }
    }

    private(set) var interfaces: [String: Interface] = [:]
    /// The IPv6 addresses for which duplicate address detection is still running or has failed.
    private(set) var unusable: Set<[UInt8]> = []
    private(set) var isChanging = false

    init(json: String) throws {
        for object in try objects(inJSON: json) {
            guard let name = object["ifname"] as? String, let index = object["ifindex"] as? Int else {
                continue
            }
            let interface = Interface(
                index: UInt32(index),
                flags: Set(object["flags"] as? [String] ?? []),
                state: object["operstate"] as? String ?? ""
            )
            interfaces[name] = interface
            isChanging = isChanging || interface.isChanging
            for address in object["addr_info"] as? [[String: Any]] ?? [] { add(address, of: interface) }
        }
    }

    var isLoopbackUp: Bool {
        interfaces.values.contains { $0.flags.isSuperset(of: ["LOOPBACK", "UP"]) }
    }

    var names: [UInt32: String] {
        Dictionary(uniqueKeysWithValues: interfaces.map { ($0.value.index, $0.key) })
    }

    /// Returns whether an interface has another name than before.
    ///
    /// - Parameter known: The previous names by index.
    func renames(_ known: [UInt32: String]) -> Bool {
        names.contains { known[$0.key] ?? $0.value != $0.value }
    }

    private mutating func add(_ address: [String: Any], of interface: Interface) {
        let isTentative = address["tentative"] != nil && address["optimistic"] == nil
        let hasFailed = address["dadfailed"] != nil
        guard isTentative || hasFailed, let text = address["local"] as? String else { return }
        if let bytes = IPAddress(text)?.bytes { unusable.insert(bytes) }
        // On a link without carrier, an address stays tentative forever.
        if !hasFailed, interface.hasCarrier { isChanging = true }
    }
}

/// The parsed output of `ip route get` for one address, without `fibmatch` and with it.
struct RouteReport {
    private let lookup: [String: Any]?
    private let match: [String: Any]?
    private var refusal: String
    /// The source address that the kernel chose; `nil` if there is none.
    let source: IPAddress?

    /// - Parameter source: The source address of the lookup. Default: `nil`, the lookup had none.
    init(lookup: IPBatch.Answer, match: IPBatch.Answer, source: IPAddress? = nil) throws {
        let (route, refusal) = try Self.read(lookup)
        self.lookup = route
        self.refusal = refusal
        self.match = try Self.read(match).route
        self.source = source ?? (route?["prefsrc"] as? String).flatMap { IPAddress($0) }
    }

    /// Replaces the reason of a missing route by the error of `connect(2)`, which looks up the route again with a source
    /// address. Other errors than those of a route are ignored.
    mutating func refuse(_ errno: CInt) {
        guard lookup == nil, [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL].contains(errno) else { return }
        refusal = String(cString: strerror(errno))
    }

    /// Whether the kernel found a route.
    var hasRoute: Bool { lookup != nil }

    private static func read(_ answer: IPBatch.Answer) throws -> (route: [String: Any]?, refusal: String) {
        switch answer {
        case .done(let text): (try objects(inJSON: text).first, "")
        case .refused(let words): (nil, words)
        }
    }

    /// Whether the route expires within 10 s. Longer lifetimes do not end during a run.
    var isExpiring: Bool {
        (match?["expires"] as? Int).map { $0 < 10 } ?? false
    }

    func expected(about address: IPAddress, _ report: InterfaceReport) -> RouteOracle.Answer {
        guard let lookup else { return .notReachable(reason) }
        let interface = (lookup["dev"] as? String).flatMap { report.interfaces[$0] }
        // The kernel would send the packet over the default route, from where no valid reply can come.
        if !report.isLoopbackUp, address.description == "::1" || address.description.hasPrefix("127.") {
            return .notReachable(.loopbackDown)
        }
        switch lookup["type"] as? String ?? "unicast" {
        case "local":
            // All packets to this machine itself use the loopback interface.
            guard report.isLoopbackUp else { return .notReachable(.loopbackDown) }
            return .reachable(source: source?.bytes ?? [], interface: interface?.index ?? 0)
        case "unicast": break
        default: return .notReachable(.notUnicast)
        }
        guard let interface, interface.hasCarrier, !isDown else { return .notReachable(.noCarrier) }
        guard let source, isUsable(source, towards: address, report) else {
            return .notReachable(.noSource)
        }
        return .reachable(source: source.bytes, interface: interface.index)
    }

    private func isUsable(
        _ source: IPAddress,
        towards address: IPAddress,
        _ report: InterfaceReport
    ) -> Bool {
        let selfAssigned: [UInt8] = [169, 254]
        if source.bytes.starts(with: selfAssigned) {
            let gateway = (lookup?["gateway"] as? String).flatMap { IPAddress($0) }
            return (gateway ?? address).bytes.starts(with: selfAssigned)
        }
        if source.isLinkLocal, !address.isLinkLocal { return false }
        return !report.unusable.contains(source.bytes)
    }

    private var reason: PathStatus.Reason {
        let words: [(String, PathStatus.Reason)] = [
            ("Network is unreachable", .noRoute), ("No route to host", .unreachable),
            ("Permission denied", .prohibited), ("Invalid argument", .blackhole),
        ]
        return words.first { refusal.contains($0.0) }?.1 ?? PathStatus.Reason(rawValue: refusal)
    }

    /// Whether all next hops are marked as dead or without carrier.
    private var isDown: Bool {
        guard let match else { return false }
        let hops = match["nexthops"] as? [[String: Any]] ?? [match]
        return hops.allSatisfy { hop in
            !Set(hop["flags"] as? [String] ?? []).isDisjoint(with: ["linkdown", "dead"])
        }
    }
}
