internal import Foundation
public import NetworkReachability

/// The conditions of the network and the time of day under which a request is sent.
///
/// ```swift
/// var options = EnqueueOptions()
/// options.constraints.isUnmetered = true
/// options.constraints.window = try DailyWindow(parsing: "22:00-06:00 Europe/Berlin")
/// ```
///
/// The request waits until all of its constraints are met, and so do the other requests of its lane. If one is no
/// longer met during an attempt, the queue ends the attempt, unless the request must not be sent twice. Such an attempt
/// is not counted.
public struct RequestConstraints: Hashable, Sendable {
    /// Whether the request is only sent over a connection that is not metered. Default `false`.
    ///
    /// Mobile networks are metered, and so are the interfaces that ``OfflineQueue/Configuration/meteredInterfaces``
    /// names. A path to this machine itself is never metered. While the interface is not known, the request waits.
    ///
    /// The queue checks the constraint for the path to the host's preferred address, and binds the connection to the
    /// interface and the source address of that path. If the path leads to this machine itself, it binds the connection
    /// only to the source address. Addresses of the other family are not tried. Each attempt opens its own connection,
    /// which is neither shared nor reused.
    public var isUnmetered = false
    /// The kinds of interfaces over which the request may be sent. Default: any.
    ///
    /// For a tunnel or a bridge, this is the kind of the interface below it that carries the packets, if it is known.
    /// The connection is bound as with ``isUnmetered``.
    public var interfaceKinds: Set<InterfaceType> = []
    /// The daily time window in which the request is sent. Default `nil`: at any time.
    public var window: DailyWindow?
    /// The parts of a stored text that cannot be evaluated here: a newer version wrote them, or their time zone was
    /// removed from this machine. A request with such a constraint is held, not sent without it.
    package private(set) var unreadable: [String] = []

    /// Creates constraints that are always met.
    public init() {}

    /// Whether the constraints are always met.
    package var isEmpty: Bool { self == RequestConstraints() }
}

// MARK: - Text form

extension RequestConstraints: CustomStringConvertible {
    private static let separator = "; "
    /// The maximum length of the text in bytes: 1 KiB, several times the longest text of three constraints.
    static let maximumTextBytes = 1024

    /// The constraints as text, such as `unmetered; interface=ethernet,wifi; window=22:00-06:00`. Empty without
    /// constraints.
    public var description: String {
        let kinds = interfaceKinds.map(\.rawValue).sorted().joined(separator: ",")
        let parts = [
            isUnmetered ? "unmetered" : nil, kinds.isEmpty ? nil : "interface=\(kinds)",
            window.map { "window=\($0)" },
        ]
        return (parts.compactMap(\.self) + unreadable).joined(separator: Self.separator)
    }

    /// Parses a text of ``description`` that was stored; `nil` stands for none. Parts that cannot be evaluated become
    /// ``unreadable``.
    init(stored text: String?) {
        for part in (text ?? "").components(separatedBy: Self.separator) where !part.isEmpty {
            do throws(QueueError) { try add(part) } catch { unreadable.append(part) }
        }
    }

    /// A message about the first part that cannot be evaluated; `nil` if there is none.
    var fault: String? {
        guard let part = unreadable.first else { return nil }
        var (alone, all) = (RequestConstraints(), self)
        do throws(QueueError) {
            try alone.add(part)
            try all.add(part)
            return nil
        } catch {
            return
                "the constraint \(quoted(part)) cannot be evaluated here, so the request is not sent: \(error.message)"
        }
    }

    private mutating func add(_ part: String) throws(QueueError) {
        let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        switch (pair.first, pair.dropFirst().first) {
        case ("unmetered", nil): isUnmetered = true
        case ("interface", let kinds?):
            var known: Set<InterfaceType> = []
            for kind in kinds.split(separator: ",", omittingEmptySubsequences: false) {
                known.insert(try Self.kind(String(kind)))
            }
            interfaceKinds.formUnion(known)
        case ("window", let window?) where self.window == nil: self.window = try DailyWindow(parsing: window)
        case ("window", .some): throw QueueError(.invalidOption, "a request has only one window")
        default:
            throw QueueError(
                .invalidOption,
                "\(quoted(part)) is not a constraint; accepted: `unmetered`, `interface=KIND,…` and `window=FROM-TO ZONE`"
            )
        }
    }

    /// Returns the kind of interface with this name.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`. Its message lists the names.
    package static func kind(_ name: String) throws(QueueError) -> InterfaceType {
        if let kind = InterfaceType(rawValue: name) { return kind }
        let accepted = InterfaceType.allCases.map(\.rawValue).joined(separator: ", ")
        throw QueueError(.invalidOption, "\(quoted(name)) is not a kind of interface; accepted: \(accepted)")
    }
}

/// The constraint for which a request waits.
public enum UnmetConstraint: Hashable, Sendable, CustomStringConvertible {
    /// ``RequestConstraints/isUnmetered``.
    case unmetered
    /// ``RequestConstraints/interfaceKinds``.
    case interfaceKind(Set<InterfaceType>)
    /// ``RequestConstraints/window``.
    case window(DailyWindow)

    /// The constraint in words.
    public var description: String {
        switch self {
        case .unmetered: "an unmetered connection"
        case .interfaceKind(let kinds):
            "an interface of the kind " + kinds.map(\.rawValue).sorted().joined(separator: " or ")
        case .window(let window): "the window \(window)" + (window.zone == nil ? " UTC" : "")
        }
    }
}

/// A time window that repeats every day, such as 22:00 to 06:00.
///
/// The times are local times of the zone. When daylight saving time begins or ends, the window follows the local time:
/// it is an hour shorter, longer or later. A window within the skipped hour does not open on that day, and one within
/// the repeated hour opens twice. On these two days, it may open and close up to 60 s late.
public struct DailyWindow: Hashable, Sendable {
    /// The minute of the day at which the window opens: 0 to 1439.
    public let start: Int
    /// The minute of the day at which the window closes: 0 to 1439, but not ``start``. A window whose end is before its
    /// start contains midnight.
    public let end: Int
    /// The identifier of the time zone, such as `Europe/Berlin`. Default `nil`: UTC.
    public let zone: String?

    /// A description of the text that ``init(parsing:)`` accepts, for error messages.
    public static let acceptedForm =
        "a window like `22:00-06:00` (UTC) or `22:00-06:00 Europe/Berlin`, with two different times from 00:00 to 23:59"

    /// Parses a text such as `22:00-06:00 Europe/Berlin`. Without a zone, the times are UTC.
    ///
    /// - Throws: ``QueueError`` with `invalidOption` and a message that quotes the text.
    public init(parsing text: String) throws(QueueError) {
        let parts = text.split(separator: " ", maxSplits: 1)
        let times = (parts.first ?? "").split(separator: "-", omittingEmptySubsequences: false)
        let zone = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "UTC"
        guard times.count == 2, let start = Self.minute(times[0]), let end = Self.minute(times[1]),
            start != end
        else {
            throw QueueError(.invalidOption, "\(quoted(text)) is not \(Self.acceptedForm)")
        }
        guard zone == "UTC" || TimeZone(identifier: zone) != nil else {
            throw QueueError(
                .invalidOption,
                "\(quoted(zone)) is not a time zone of this machine; accepted: \(Self.acceptedForm)"
            )
        }
        (self.start, self.end, self.zone) = (start, end, zone == "UTC" ? nil : zone)
    }

    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.count == 2 && $0.allSatisfy { ("0"..."9").contains($0) } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), (0...23).contains(hour),
            (0...59).contains(minute)
        else { return nil }
        return hour * 60 + minute
    }
}

extension DailyWindow: CustomStringConvertible {
    /// The window as text, which ``init(parsing:)`` accepts.
    public var description: String {
        "\(Self.text(start))-\(Self.text(end))" + (zone.map { " \($0)" } ?? "")
    }

    private static func text(_ minute: Int) -> String {
        [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
