internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchService

/// A notification as received from the kernel: an output line of `netwatch monitor --raw` and `--replay`. Numbers have
/// the meaning that the kernel's headers define.
struct NotificationLine: Encodable {
    var v = ControlMessage.version
    var type = "notification"
    var time: Date
    /// `link`, `address`, `route`, `rule`, `nextHop`, `setting`, `prefix`, `other` or `malformed`. `lost` marks the place
    /// where the kernel dropped notifications.
    var kind: String
    /// `new` or `deleted`.
    var change: String?
    var messageType: UInt16?
    var family: String?
    var interface: String?
    var index: UInt32?
    var flags: UInt32?
    var operationalState: UInt8?
    var prefix: String?
    var from: String?
    var gateway: String?
    var source: String?
    var action: UInt8?
    var table: UInt32?
    var origin: UInt8?
    var priority: UInt32?
    var mark: UInt32?
    var nextHopID: UInt32?
    var nextHops: [Hop]?

    struct Hop: Encodable {
        var interface: String?
        var index: UInt32
        var gateway: String?
    }

    private enum CodingKeys: String, CodingKey {
        case v, type, time, kind, change, messageType, family, interface, index, flags, operationalState
        case prefix, from, gateway, source, action, table, origin, priority, mark, nextHops
        case nextHopID = "nextHopId"
    }

    /// Returns a line that marks lost notifications.
    static func lost(time: Date) -> NotificationLine {
        NotificationLine(time: time, kind: "lost")
    }

    private init(time: Date, kind: String) {
        self.time = time
        self.kind = kind
    }

    /// - Parameter names: The known names of interfaces by index.
    init(_ notification: NetlinkNotification, time: Date, names: [UInt32: String]) {
        self.init(time: time, kind: notification.kind.rawValue)
        change = notification.change?.rawValue
        messageType = notification.messageType
        family = notification.familyName
        index = notification.interface
        interface = notification.interfaceName ?? notification.interface.flatMap { names[$0] }
        flags = notification.flags
        operationalState = notification.operationalState
        prefix = notification.prefix?.description
        from = notification.from?.description
        gateway = notification.gateway?.description
        source = notification.source?.description
        (action, table, origin) = (notification.action, notification.table, notification.origin)
        (priority, mark) = (notification.priority, notification.mark)
        nextHopID = notification.nextHopID
        guard !notification.nextHops.isEmpty else { return }
        nextHops = notification.nextHops.map { hop in
            Hop(interface: names[hop.interface], index: hop.interface, gateway: hop.gateway?.description)
        }
    }

    /// Returns whether the notification is about one of these interfaces, or may have been, because it was lost.
    ///
    /// - Parameter devices: The names of the interfaces; empty for all.
    func concerns(_ devices: Set<String>) -> Bool {
        if devices.isEmpty || kind == "lost" { return true }
        let interfaces = [interface] + (nextHops ?? []).map(\.interface)
        return !devices.isDisjoint(with: interfaces.compactMap(\.self))
    }

    /// `14:03:49.202  new      route     198.51.100.0/24 via 192.0.2.2 dev eth0 table 254`
    var text: String {
        let columns = [
            LocalTime.format(time), (change ?? "").padded(to: 7), kind.padded(to: 9),
            fields.joined(separator: " "),
        ]
        return columns.joined(separator: "  ")
    }

    private var fields: [String] {
        var fields: [String?] = [subject, from.map { "from \($0)" }]
        fields += [gateway.map { "via \($0)" }, kind == "link" ? nil : device(interface, index)]
        fields += (nextHops ?? []).map { hop in
            ["nexthop", hop.gateway.map { "via \($0)" }, device(hop.interface, hop.index)]
                .compactMap(\.self).joined(separator: " ")
        }
        fields += [source.map { "src \($0)" }, kind == "nextHop" ? nil : nextHopID.map { "nhid \($0)" }]
        fields += [priority.map { kind == "rule" ? "priority \($0)" : "metric \($0)" }]
        fields += [mark.map { "mark \($0)" }, table.map { "table \($0)" }]
        fields += [stateName.map { "state \($0)" }, flags.map { "flags 0x" + String($0, radix: 16) }]
        return fields.compactMap(\.self)
    }

    /// The first field of the line: what the notification is about.
    private var subject: String? {
        switch kind {
        case "link": return interface ?? index.map { "#\($0)" }
        case "address", "prefix": return prefix
        case "route": return [actionName, prefix ?? "default"].compactMap(\.self).joined(separator: " ")
        case "rule":
            let selector = prefix.map { "to \($0)" } ?? (from == nil ? "all" : nil)
            return [ruleActionName, selector].compactMap(\.self).joined(separator: " ")
        case "nextHop": return nextHopID.map { "id \($0)" }
        case "setting": return family
        case "other": return messageType.map { "message type \($0)" }
        case "lost": return "notifications arrived faster than they were read"
        default: return "bytes that are not a message"
        }
    }

    /// The action of a rule (`FR_ACT_…` of `<linux/fib_rules.h>`); `nil` for a lookup, the common case.
    private var ruleActionName: String? {
        let names: [UInt8: String] = [2: "goto", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"]
        return action.flatMap { names[$0] }
    }

    /// The type of a route (`RTN_…` of `<linux/rtnetlink.h>`); `nil` for a unicast route, the common case.
    private var actionName: String? {
        let names: [UInt8: String] = [
            2: "local", 3: "broadcast", 4: "anycast", 5: "multicast", 6: "blackhole", 7: "unreachable",
            8: "prohibit", 9: "throw",
        ]
        return action.flatMap { names[$0] }
    }

    /// The operational state (RFC 2863 §6, `ifOperStatus`), numbered as in the kernel (`IF_OPER_…`).
    private var stateName: String? {
        let names = ["unknown", "notPresent", "down", "lowerLayerDown", "testing", "dormant", "up"]
        return operationalState.map { $0 < names.count ? names[Int($0)] : "\($0)" }
    }

    private func device(_ name: String?, _ index: UInt32?) -> String? {
        guard let name = name ?? index.map({ "#\($0)" }) else { return nil }
        return "dev \(name)"
    }
}

extension NetlinkNotification {
    /// `ipv4`, `ipv6` or the number of another family; `nil` for none.
    fileprivate var familyName: String? {
        switch family {
        case nil, 0: nil
        case UInt8(AF_INET): "ipv4"
        case UInt8(AF_INET6): "ipv6"
        case let family?: "\(family)"
        }
    }
}

/// Prints notifications with the names that the interfaces had when the kernel sent them.
struct NotificationPrinter {
    let format: OutputFormat
    private let devices: Set<String>
    private var names: [UInt32: String] = [:]
    private var isEmpty = true
    private let encoder = ControlMessage.encoder

    /// - Parameter devices: The interfaces whose notifications are printed; empty for all notifications.
    init(format: OutputFormat, devices: Set<String>) {
        self.format = format
        self.devices = devices
    }

    /// Prints the notifications of a record. The initial state only provides names.
    mutating func print(_ record: NetlinkRecording.Record) {
        let time = Date(timeIntervalSince1970: Double(record.wall) / 1e9)
        switch record.content {
        case .initialState(let bytes):
            for notification in NetlinkNotification.all(in: bytes) { learn(notification) }
        case .overrun: print(.lost(time: time))
        case .datagram(let bytes):
            for notification in NetlinkNotification.all(in: bytes) {
                learn(notification)
                print(NotificationLine(notification, time: time, names: names))
            }
        }
    }

    /// Takes the first name of each interface from a record, for notifications before the one that contains the name.
    mutating func learnFirstNames(in record: NetlinkRecording.Record) {
        switch record.content {
        case .initialState(let bytes), .datagram(let bytes):
            for notification in NetlinkNotification.all(in: bytes) {
                guard let index = notification.interface, names[index] == nil else { continue }
                learn(notification)
            }
        case .overrun: break
        }
    }

    /// Prints a note on standard error if no notification was printed.
    func noteIfEmpty() {
        guard isEmpty else { return }
        Printer.note("the recording has no notifications\(devices.isEmpty ? "" : " of these interfaces")")
    }

    private mutating func learn(_ notification: NetlinkNotification) {
        guard notification.kind == .link, let index = notification.interface else { return }
        if let name = notification.interfaceName { names[index] = name }
    }

    private mutating func print(_ line: NotificationLine) {
        guard line.concerns(devices) else { return }
        isEmpty = false
        switch format {
        case .text: Printer.line(line.text)
        case .json: Printer.json(line, with: encoder)
        }
    }
}
