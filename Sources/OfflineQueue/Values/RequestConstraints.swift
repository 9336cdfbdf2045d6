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
        var other = RequestConstraints()
        do throws(QueueError) {
            try other.add(part)
            return nil
        } catch {
            return
                "the constraint \(quoted(part)) cannot be evaluated here, so the request is not sent: \(error.message)"
        }
    }

    private mutating func add(_ part: String) throws(QueueError) {
        let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
        switch (pair.first, pair.dropFirst().first) {
        case ("unmetered", nil): isUnmetered = true
        case ("interface", let kinds?):
            var known: Set<InterfaceType> = []
            for kind in kinds.split(separator: ",") { known.insert(try Self.kind(String(kind))) }
            interfaceKinds.formUnion(known)
        case ("window", let window?): self.window = try DailyWindow(parsing: window)
        default: throw QueueError(.invalidOption, "\(quoted(part)) is not a constraint")
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
