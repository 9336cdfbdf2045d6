internal import NetwatchEventLoop
internal import OfflineQueue

/// The names of an object's members as the client wrote them, including those of nested objects.
struct MemberNames {
    /// The member names, each with the names of the members inside it. Empty for values that are not objects.
    private(set) var members: [String: MemberNames] = [:]

    /// Adds a member.
    ///
    /// - Returns: Whether the name is new in the object.
    mutating func add(_ name: String) -> Bool {
        if members[name] != nil { return false }
        members[name] = MemberNames()
        return true
    }

    /// Sets the names of the object in a member.
    mutating func set(_ names: MemberNames, of name: String) {
        members[name] = names
    }

    /// Rejects members that the decoded message does not have. Otherwise a misspelt option would be ignored silently.
    ///
    /// - Throws: ``Problem`` with `malformed_body`, which names the first unknown member and the accepted names.
    func check(against message: Any, within path: String = "") throws(Problem) {
        guard !members.isEmpty else { return }
        let accepted = AcceptedNames.of(message)
        if let unknown = members.keys.filter({ accepted[$0] == nil }).min() {
            throw .unknownName(path + unknown, code: "malformed_body", accepted: accepted.names)
        }
        for (name, nested) in members where !nested.members.isEmpty {
            guard let value = accepted.value(of: name, in: message) else { continue }
            try nested.check(against: value, within: "\(path)\(name).")
        }
    }
}

/// The names of a message's members. They are cached per type, because finding them by reflection is slow.
private struct AcceptedNames {
    /// The names in declaration order, spelled as ``ControlMessage/encoder`` does.
    let names: [String]
    private let positions: [String: Int]

    private static let known = Lock<[ObjectIdentifier: AcceptedNames]>([:])

    /// Returns the position of a name among the message's properties.
    subscript(name: String) -> Int? { positions[name] }

    static func of(_ message: Any) -> AcceptedNames {
        let type = ObjectIdentifier(Swift.type(of: message))
        if let names = known.withLock({ $0[type] }) { return names }
        let names = AcceptedNames(Mirror(reflecting: message))
        known.withLock { $0[type] = names }
        return names
    }

    /// - Parameter mirror: The mirror of a structure. All values of a structure have the same properties, so the result
    ///   is valid for the type.
    private init(_ mirror: Mirror) {
        names = mirror.children.compactMap { $0.label?.snakeCase }
        positions = Dictionary(zip(names, 0...), uniquingKeysWith: { first, _ in first })
    }

    /// Returns the unwrapped value of a property; `nil` if the property is unknown or `nil`.
    func value(of name: String, in message: Any) -> Any? {
        guard let position = positions[name] else { return nil }
        let children = Mirror(reflecting: message).children
        let value = children[children.index(children.startIndex, offsetBy: position)].value
        let mirror = Mirror(reflecting: value)
        return mirror.displayStyle == .optional ? mirror.children.first?.value : value
    }
}
