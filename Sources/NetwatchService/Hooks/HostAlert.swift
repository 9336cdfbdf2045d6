internal import FoundationEssentials
internal import Logging
internal import NetwatchEventLoop
internal import OfflineQueue

/// What a hook reports: a host is down, or up again.
struct HostAlert: Hashable, Sendable {
    let event: Hook.Event
    let host: String
    /// What is checked, for people.
    let check: String
    let cause: OutageCause
    /// Why the host is down; `nil` if that is not known.
    let reason: String?
    /// Identifies the outage among those of the host; see ``HostTracker/Start/id``.
    let outage: Int64
    /// When the outage began, in milliseconds since 1970.
    let downSince: Int64
    /// When the host was up again; `nil` if it is down.
    let upSince: Int64?

    /// A sentence for people.
    var text: String {
        let kind = cause.rawValue
        let cause = reason.map { "\(kind): \($0)" } ?? kind
        switch event {
        case .down: return "\(host) is down (\(cause)) since \(Self.time(downSince))"
        case .up: return "\(host) is up again; it was down (\(cause)) since \(Self.time(downSince))"
        }
    }

    /// The names and values of the alert, in which times are RFC 3339. Values that are not known are missing.
    private var values: [(name: Name, value: String)] {
        let values: [(name: Name, value: String?)] = [
            (.event, event.rawValue), (.host, host), (.check, check), (.cause, cause.rawValue),
            (.reason, reason), (.downSince, Self.time(downSince)), (.upSince, upSince.map(Self.time)),
            (.text, text),
        ]
        return values.compactMap { entry in entry.value.map { (name: entry.name, value: $0) } }
    }

    /// The names of the values, as members of the JSON object.
    private enum Name: String, CaseIterable {
        case event, host, check, cause, reason, text
        case downSince = "down_since"
        case upSince = "up_since"

        var variable: String { "NETWATCH_\(rawValue.uppercased())" }
    }

    private static func time(_ milliseconds: Int64) -> String { Date(milliseconds: milliseconds).rfc3339 }
}

// MARK: - Forms

extension HostAlert {
    /// The fields of log entries about the alert.
    var fields: Logger.Metadata { .fields([.host: host, .cause: cause.rawValue]) }

    /// The names of the variables of a program's environment: `NETWATCH_EVENT` and so on.
    static let variables = Name.allCases.map(\.variable)

    /// The variables of a program's environment. Each value is one printable line.
    var environment: [String: String] {
        Dictionary(uniqueKeysWithValues: values.map { ($0.variable, $1.printable) })
    }

    /// The JSON object that a webhook sends. Its version is the member `v`: 1.
    var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let members = Dictionary(
                uniqueKeysWithValues: values.map { ($0.name.rawValue, Member.text($0.value)) }
            )
            return try encoder.encode(members.merging(["v": .number(1)]) { $1 })
        }
    }

    private enum Member: Encodable {
        case text(String)
        case number(Int)

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .number(let number): try container.encode(number)
            }
        }
    }

    /// Returns the id of the request that reports the alert to a URL, which is also its idempotency key. The same event
    /// of the same outage always has the same id.
    func id(to url: String) throws(QueueError) -> String {
        try UUIDv8.make(hashing: "netwatch hook \(event.rawValue) \(outage) \(host) \(url)")
    }
}
