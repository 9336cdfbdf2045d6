internal import Synchronization

/// The names of an object's members as a client wrote them, with those of the objects within it.
struct MemberNames {
    /// What is no object has none.
    private(set) var members: [String: MemberNames] = [:]

    /// Adds a member.
    ///
    /// - Returns: Whether the object had none of this name.
    mutating func add(_ name: String) -> Bool {
        if members[name] != nil { return false }
        members[name] = MemberNames()
        return true
    }

    /// Sets the names within a member.
    mutating func set(_ names: MemberNames, of name: String) {
        members[name] = names
    }

    /// Refuses what the message that was made of the object does not have: a misspelt option would be lost without a
    /// word.
    ///
    /// - Throws: ``Problem`` with `malformed_body`, naming the first of them and what is accepted in its place.
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

/// The names of a message's members. Reflection finds them and is slow, so they are kept for each type.
private struct AcceptedNames {
    /// In the order of their declaration, as ``ControlMessage/encoder`` would name them.
    let names: [String]
    private let positions: [String: Int]

    private static let known = Mutex<[ObjectIdentifier: AcceptedNames]>([:])

    /// The position of a name among the message's properties.
    subscript(name: String) -> Int? { positions[name] }

    static func of(_ message: Any) -> AcceptedNames {
        let type = ObjectIdentifier(Swift.type(of: message))
        if let names = known.withLock({ $0[type] }) { return names }
        let names = AcceptedNames(Mirror(reflecting: message))
        known.withLock { $0[type] = names }
        return names
    }

    /// - Parameter mirror: Of a structure, whose properties are the same for all values of its type.
    private init(_ mirror: Mirror) {
        names = mirror.children.compactMap { $0.label?.snakeCase }
        positions = Dictionary(zip(names, 0...), uniquingKeysWith: { first, _ in first })
    }

    /// The value of a property, which is not optional; `nil` when it has none.
    func value(of name: String, in message: Any) -> Any? {
        guard let position = positions[name] else { return nil }
        let children = Mirror(reflecting: message).children
        let value = children[children.index(children.startIndex, offsetBy: position)].value
        let mirror = Mirror(reflecting: value)
        return mirror.displayStyle == .optional ? mirror.children.first?.value : value
    }
}

extension String {
    /// The name of a property as JSON spells it: `ttl_seconds` for `ttlSeconds`.
    var snakeCase: String {
        reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
    }
}
