internal import Foundation

/// The names of an object's members as a client wrote them, with those of the objects within it.
struct MemberNames: Decodable {
    private let members: [String: MemberNames]

    /// What is no object has none.
    init(from decoder: any Decoder) {
        members = (try? [String: MemberNames](from: decoder)) ?? [:]
    }

    /// Refuses what the message that was made of the object does not have: a misspelt option would be lost without a
    /// word.
    ///
    /// - Throws: ``Problem`` with `malformed_body`, naming the first of them and what is accepted in its place.
    func check(against message: Any, within path: String = "") throws(Problem) {
        let known = Self.properties(of: message)
        let accepted = known.map(\.name)
        if let unknown = members.keys.sorted().first(where: { !accepted.contains($0) }) {
            throw .unknownName(path + unknown, code: "malformed_body", accepted: accepted)
        }
        for (name, value) in known {
            try members[name]?.check(against: value, within: "\(path)\(name).")
        }
    }

    /// In the order of their declaration, as ``ControlMessage/encoder`` would name them.
    private static func properties(of message: Any) -> [(name: String, value: Any)] {
        let mirror = Mirror(reflecting: message)
        if mirror.displayStyle == .optional {
            return mirror.children.first.map { properties(of: $0.value) } ?? []
        }
        return mirror.children.compactMap { child in child.label.map { (snakeCase($0), child.value) } }
    }

    private static func snakeCase(_ name: String) -> String {
        name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
    }
}
