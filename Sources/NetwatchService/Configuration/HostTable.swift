internal import ClientCore
internal import NetworkReachability

/// Reads a `[[host]]` table.
struct HostTable {
    /// A fault of one key, or of the table as a whole.
    struct Fault: Error, Hashable {
        var key: String?
        let message: String
    }

    static let keys = ["name", "url", "tcp", "route", "expect-status", "interval", "timeout", "fall", "rise"]
    private static let checks = ["url", "tcp", "route"]

    private let values: [String: TOMLNode.Value]
    private(set) var faults: [Fault] = []

    /// The name, also of a host with other faults; `nil` if the name is a fault or unknown.
    private(set) var name: String?
    /// The host; `nil` if there are faults.
    private(set) var host: WatchedHost?

    init(_ entries: [(key: String, node: TOMLNode)], defaults: HostDefaults) {
        values = Dictionary(entries.map { ($0.key, $0.node.value) }) { first, _ in first }
        for key in values.keys.sorted() where !Self.keys.contains(key) {
            faults.append(Fault(key: key, message: UnknownName.message(key, accepted: Self.keys)))
        }
        var settings = defaults
        readPace(into: &settings)
        let status = expectedStatus()
        let check = check(status)
        name = readName(check)
        guard faults.isEmpty, let check, let name else { return }
        host = WatchedHost(name: name, check: check, defaults: settings)
    }

    private mutating func readPace(into settings: inout HostDefaults) {
        settings.interval = duration("interval", WatchedHost.acceptedIntervals) ?? settings.interval
        settings.timeout = duration("timeout", WatchedHost.acceptedTimeouts) ?? settings.timeout
        settings.fall = threshold("fall") ?? settings.fall
        settings.rise = threshold("rise") ?? settings.rise
    }

    private mutating func duration(_ key: String, _ range: ClosedRange<Duration>) -> Duration? {
        guard let value = values[key] else { return nil }
        let duration = Setting.duration(value, in: range)
        if duration == nil { refuse(key, value, accepted: Setting.durationForms(range)) }
        return duration
    }

    private mutating func threshold(_ key: String) -> Int? {
        let range = WatchedHost.acceptedThresholds
        guard let value = values[key] else { return nil }
        if case .integer(let number) = value, let count = Int(exactly: number), range.contains(count) {
            return count
        }
        refuse(key, value, accepted: "an integer from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    private mutating func expectedStatus() -> ClosedRange<Int>? {
        guard let value = values["expect-status"] else { return 200...299 }
        if values["url"] == nil {
            faults.append(Fault(key: "expect-status", message: "`expect-status` requires `url`"))
        }
        let bounds: [Int]
        switch value {
        case .integer(let status): bounds = [Int(clamping: status)]
        case .string(let text):
            bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        default: bounds = []
        }
        let isValid = (1...2).contains(bounds.count) && bounds.allSatisfy { (100...599).contains($0) }
        guard isValid, bounds[0] <= bounds[bounds.count - 1] else {
            refuse("expect-status", value, accepted: "a status like `204`, or statuses like `\"200-299\"`")
            return nil
        }
        return bounds[0]...bounds[bounds.count - 1]
    }

    // MARK: The check

    private mutating func check(_ status: ClosedRange<Int>?) -> WatchedHost.Check? {
        let given = Self.checks.filter { values[$0] != nil }
        guard given.count == 1, let value = values[given[0]] else {
            let what = given.isEmpty ? "the host has none of" : "the host has more than one of"
            faults.append(Fault(message: "\(what) `url`, `tcp` and `route`; it must have exactly one"))
            return nil
        }
        guard case .string(let text) = value else {
            refuse(given[0], value, accepted: "a string")
            return nil
        }
        switch given[0] {
        case "url": return web(text, status ?? 200...299)
        case "tcp": return tcp(text)
        default: return networkHost(text, of: "route").map { .route($0) }
        }
    }

    private mutating func web(_ url: String, _ status: ClosedRange<Int>) -> WatchedHost.Check? {
        let check = WatchedHost.Check.web(url: url, expectedStatus: status)
        do {
            let host = WatchedHost(name: "", check: check)
            _ = try (host.networkHost, host.probe)
            return check
        } catch {
            faults.append(Fault(key: "url", message: "\(error)"))
            return nil
        }
    }

    private mutating func tcp(_ text: String) -> WatchedHost.Check? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            port > 0
        else {
            refuse("tcp", .string(text), accepted: "a host and a port, like `db.example.com:5432`")
            return nil
        }
        var host = text[..<colon]
        if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
        return networkHost(String(host), of: "tcp").map { .tcp($0, port: port) }
    }

    private mutating func networkHost(_ text: String, of key: String) -> NetworkHost? {
        do {
            return try NetworkHost(validating: text)
        } catch {
            faults.append(Fault(key: key, message: "`\(key)`: \(error)"))
            return nil
        }
    }

    // MARK: The name

    /// - Parameter check: `nil` if it has a fault. There is then no default name.
    private mutating func readName(_ check: WatchedHost.Check?) -> String? {
        guard let value = values["name"] else {
            guard let check else { return nil }
            return defaultName(check)
        }
        if case .string(let text) = value, WatchedHost.isValidName(text) { return text }
        refuse(
            "name",
            value,
            accepted: "1 to \(WatchedHost.longestName) letters, digits, `.`, `_`, `-` and `:`"
        )
        return nil
    }

    /// The host of the URL, or the host and the port.
    private mutating func defaultName(_ check: WatchedHost.Check) -> String? {
        let name: String
        switch check {
        case .web: name = (try? WatchedHost(name: "", check: check).networkHost.text) ?? ""
        case .tcp(let host, let port): name = "\(host.text):\(port)"
        case .route(let host): name = host.text
        }
        if WatchedHost.isValidName(name) { return name }
        faults.append(Fault(message: "the host needs a `name`, because its address is not a valid name"))
        return nil
    }

    private mutating func refuse(_ key: String, _ value: TOMLNode.Value, accepted: String) {
        faults.append(Fault(key: key, message: "`\(key)` is \(value.text); it must be \(accepted)"))
    }
}
