internal import FoundationEssentials
internal import Logging
internal import NetwatchEventLoop
internal import OfflineQueue

/// A message of a hook: hosts that went down for the same cause, or that are up again after such outages.
struct HookMessage: Hashable, Sendable {
    /// The maximum length of the JSON objects of the hosts in a message, in bytes: 48 KiB. With the other members, a
    /// message has less than 64 KiB, which servers accept by default and a variable of the environment can contain.
    private static let mostBytes = 48 * 1024
    /// The maximum number of names in a text: 10.
    private static let mostNames = 10
    /// The maximum length of a reason and of the description of a check, in bytes of UTF-8. As JSON, a text may be
    /// twice as long.
    private static let longestText = 1000

    /// The hosts, at least one. All have the same event and the same cause.
    let alerts: [HostAlert]

    /// The first host.
    private var first: HostAlert { alerts[0] }
    var event: Hook.Event { first.event }

    /// Returns the messages for changes: one for each event and cause, in the order of their first changes.
    static func messages(for alerts: [HostAlert]) -> [HookMessage] {
        struct Kind: Hashable {
            let event: Hook.Event
            let cause: OutageCause
        }
        var kinds: [Kind] = []
        let groups = Dictionary(grouping: alerts) { alert in
            let kind = Kind(event: alert.event, cause: alert.cause)
            if !kinds.contains(kind) { kinds.append(kind) }
            return kind
        }
        return kinds.compactMap { groups[$0].map(HookMessage.init) }
    }

    /// What the message is about, for log messages.
    var subject: String { alerts.count == 1 ? "host `\(first.host)`" : "\(alerts.count) hosts" }

    /// The fields of log entries about the message.
    var fields: Logger.Metadata {
        .fields([.host: alerts.count == 1 ? first.host : nil, .cause: first.cause.rawValue])
    }

    // MARK: Values

    private var downSince: Int64 { alerts.lazy.map(\.downSince).min() ?? 0 }
    private var upSince: Int64? { alerts.lazy.compactMap(\.upSince).max() }

    /// The reason, if it is the same for all hosts.
    private var reason: String? {
        guard let reason = first.reason, alerts.allSatisfy({ $0.reason == reason }) else { return nil }
        return reason.printable(upTo: Self.longestText)
    }

    /// A sentence for people.
    private var text: String {
        let cause = reason.map { "\(first.cause.rawValue): \($0)" } ?? first.cause.rawValue
        let since = Self.time(downSince)
        guard alerts.count > 1 else {
            return event == .down
                ? "\(first.host) is down (\(cause)) since \(since)"
                : "\(first.host) is up again; it was down (\(cause)) since \(since)"
        }
        let state =
            event == .down ? "are down (\(cause))" : "are up again; they were down (\(cause))"
        return "\(alerts.count) hosts \(state) since \(since): \(names)"
    }

    private var names: String {
        let names = alerts.prefix(Self.mostNames).map(\.host).joined(separator: ", ")
        let rest = alerts.count - Self.mostNames
        return rest > 0 ? "\(names) and \(rest) more" : names
    }

    private static func time(_ milliseconds: Int64) -> String { Date(milliseconds: milliseconds).rfc3339 }
}

// MARK: - Forms

extension HookMessage {
    /// The variables of a program's environment.
    enum Variable: String, CaseIterable {
        case event = "NETWATCH_EVENT"
        case cause = "NETWATCH_CAUSE"
        case reason = "NETWATCH_REASON"
        case count = "NETWATCH_COUNT"
        case hosts = "NETWATCH_HOSTS"
        case truncatedHosts = "NETWATCH_TRUNCATED_HOSTS"
        case downSince = "NETWATCH_DOWN_SINCE"
        case upSince = "NETWATCH_UP_SINCE"
        case text = "NETWATCH_TEXT"
        case json = "NETWATCH_JSON"
    }

    /// A message as JSON, and as variables.
    struct Form {
        let json: Data
        let environment: [String: String]
    }

    /// The JSON object of the message, whose version is the member `v`: 1, and the variables of a program's
    /// environment: `NETWATCH_EVENT` and so on. Each value of a variable is one line.
    ///
    /// The order of the hosts decides which of them are left out of a message that would be too long.
    var form: Form {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            encoder.keyEncodingStrategy = .convertToSnakeCase
            let hosts = try listed(by: encoder)
            let object = Object(
                event: event.rawValue,
                cause: first.cause.rawValue,
                reason: reason,
                count: alerts.count,
                hosts: hosts,
                truncatedHosts: alerts.count - hosts.count,
                downSince: Self.time(downSince),
                upSince: upSince.map(Self.time),
                text: text
            )
            let json = try encoder.encode(object)
            return Form(json: json, environment: object.environment(json))
        }
    }

    /// Returns the objects of as many hosts as a message may contain.
    private func listed(by encoder: JSONEncoder) throws -> [HostObject] {
        var objects: [HostObject] = []
        var length = 0
        for alert in alerts {
            let object = HostObject(
                host: alert.host,
                check: alert.check.printable(upTo: Self.longestText),
                reason: alert.reason?.printable(upTo: Self.longestText),
                outage: alert.outage,
                downSince: Self.time(alert.downSince),
                upSince: alert.upSince.map(Self.time)
            )
            length += try encoder.encode(object).count + 1
            guard length <= Self.mostBytes else { break }
            objects.append(object)
        }
        return objects
    }

    private struct HostObject: Encodable {
        let host: String
        let check: String
        let reason: String?
        let outage: Int64
        let downSince: String
        let upSince: String?
    }

    private struct Object: Encodable {
        let v = 1
        let event: String
        let cause: String
        let reason: String?
        let count: Int
        let hosts: [HostObject]
        let truncatedHosts: Int
        let downSince: String
        let upSince: String?
        let text: String

        func environment(_ json: Data) -> [String: String] {
            let values: [Variable: String?] = [
                .event: event, .cause: cause, .reason: reason, .count: "\(count)",
                // Names of hosts contain no spaces.
                .hosts: hosts.map(\.host).joined(separator: " "), .truncatedHosts: "\(truncatedHosts)",
                .downSince: downSince, .upSince: upSince, .text: text,
                .json: String(decoding: json, as: UTF8.self),
            ]
            return values.reduce(into: [:]) { variables, entry in
                variables[entry.key.rawValue] = entry.value
            }
        }
    }
}
