package import NetwatchEventLoop
package import NetworkReachability

/// The interface of a path, for the constraints of requests.
package struct PathInterface: Hashable, Sendable {
    package let kind: InterfaceType
    package let isMetered: Bool
    /// The interface and source address of the path, to which a socket can be bound; `nil` if they are not known.
    ///
    /// The binding takes part in `==`, so that a change of the source address alone is a change of the gate. Otherwise the
    /// scheduler would bind later attempts to an address that no longer exists. The path monitor reports such a change
    /// as another path in any case.
    package let binding: SocketBinding?

    package init(kind: InterfaceType, isMetered: Bool, binding: SocketBinding? = nil) {
        self.kind = kind
        self.isMetered = isMetered
        self.binding = binding
    }
}

extension RequestConstraints {
    /// Whether a constraint concerns the interface.
    var concernInterface: Bool { isUnmetered || !interfaceKinds.isEmpty }

    /// Returns the first constraint that an interface does not meet; `nil` if it meets all.
    ///
    /// - Parameter interface: `nil` if it is not known. It then meets no constraint.
    func unmet(by interface: PathInterface?) -> UnmetConstraint? {
        if isUnmetered, interface?.isMetered ?? true { return .unmetered }
        guard !interfaceKinds.isEmpty else { return nil }
        let isMet = interface.map { interfaceKinds.contains($0.kind) } ?? false
        return isMet ? nil : .interfaceKind(interfaceKinds)
    }
}

/// The interfaces that a user declares as metered, by name.
package struct MeteredInterfaces: Sendable {
    /// Names, in which `*` stands for any number of characters.
    let patterns: [String]

    private static let longestPattern = 255

    /// A description of the patterns that ``isValid(_:)`` accepts, for error messages.
    package static let accepted =
        "the name of an interface, 1 to \(InterfaceName.maximumBytes) bytes without spaces, `/` and `:`, such as "
        + "wwan0; `*` stands for any characters"

    /// Returns whether an interface can have a name that matches the pattern (`dev_valid_name` in Linux).
    package static func isValid(_ pattern: String) -> Bool {
        let fixed = pattern.filter { $0 != "*" }
        return (1...longestPattern).contains(pattern.utf8.count)
            && fixed.utf8.count <= InterfaceName.maximumBytes
            && ![".", ".."].contains(pattern)
            && !pattern.contains { $0.isWhitespace || $0 == "/" || $0 == ":" }
    }

    /// Returns whether an interface is metered: a mobile network always is.
    func contains(name: String, kind: InterfaceType) -> Bool {
        kind == .cellular || patterns.contains { Self.matches(name[...], $0[...]) }
    }

    private static func matches(_ name: Substring, _ pattern: Substring) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        guard first == "*" else {
            return name.first == first && matches(name.dropFirst(), pattern.dropFirst())
        }
        // Several stars in a row would multiply the number of calls.
        let rest = pattern.drop { $0 == "*" }
        return matches(name, rest) || (!name.isEmpty && matches(name.dropFirst(), pattern))
    }
}
