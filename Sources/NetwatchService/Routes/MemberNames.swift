internal import Foundation
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

/// A message whose members are not its properties.
protocol NamedMembers {
    /// The names in camel case.
    static var memberNames: [String] { get }
    /// Returns the value of a member that is an object; `nil` if it is missing.
    func object(named name: String) -> Any?
}

/// The names of a message's members. They are cached per type, because finding them by reflection is slow.
private struct AcceptedNames {
    /// The names in declaration order, spelled as ``ControlMessage/encoder`` does.
    let names: [String]
    private let properties: [String]
    private let positions: [String: Int]

    private static let known = Lock<[ObjectIdentifier: AcceptedNames]>([:])

    /// Returns the position of a name among the message's properties.
    subscript(name: String) -> Int? { positions[name] }

    static func of(_ message: Any) -> AcceptedNames {
        let type = ObjectIdentifier(Swift.type(of: message))
        if let names = known.withLock({ $0[type] }) { return names }
        let named = (message as? any NamedMembers).map { Swift.type(of: $0).memberNames }
        let names = AcceptedNames(named ?? Mirror(reflecting: message).children.compactMap(\.label))
        known.withLock { $0[type] = names }
        return names
    }

    /// - Parameter properties: The names of a structure's properties. All values of a structure have the same, so the
    ///   result is valid for the type.
    private init(_ properties: [String]) {
        self.properties = properties
        names = properties.map(\.snakeCase)
        positions = Dictionary(zip(names, 0...), uniquingKeysWith: { first, _ in first })
    }

    /// Returns the unwrapped value of a property; `nil` if the property is unknown or `nil`.
    func value(of name: String, in message: Any) -> Any? {
        guard let position = positions[name] else { return nil }
        if let message = message as? any NamedMembers { return message.object(named: properties[position]) }
        let children = Mirror(reflecting: message).children
        let value = children[children.index(children.startIndex, offsetBy: position)].value
        let mirror = Mirror(reflecting: value)
        return mirror.displayStyle == .optional ? mirror.children.first?.value : value
    }
}

/// Collects the member names in a client's JSON. Rejects an object with two members of the same name, because decoders
/// differ in which of them they keep (RFC 8259 §4).
extension MemberNames {
    /// - Parameter json: Valid JSON.
    /// - Throws: ``Problem`` with `malformed_body` if an object has two members of the same name, or if the JSON is not
    ///   UTF-8. The decoder also accepts UTF-16 and UTF-32, which are recognized by their zero bytes.
    init(of json: [UInt8]) throws(Problem) {
        guard !json.contains(0) else { throw .malformedBody("the body is not UTF-8") }
        var scan = MemberScan(bytes: json)
        while scan.hasMore {
            if let name = scan.step() { throw .malformedBody("the member `\(name.prefix(80))` occurs twice") }
        }
        self = scan.names
    }
}

/// A single pass over the bytes of valid JSON.
private struct MemberScan {
    /// An open object or array.
    private struct Container {
        let isObject: Bool
        var names = MemberNames()
        /// The last name that was read.
        var name = ""
    }

    private let bytes: [UInt8]
    private var position = 0
    private var open: [Container] = []
    /// Whether the next string is a member name.
    private var expectsName = false
    /// The names of the outermost object.
    private(set) var names = MemberNames()

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    var hasMore: Bool { position < bytes.count }

    /// Advances past the next token. Returns the token if it is a member name that the object already has, otherwise
    /// `nil`.
    mutating func step() -> String? {
        switch bytes[position] {
        case UInt8(ascii: "{"): begin(isObject: true)
        case UInt8(ascii: "["): begin(isObject: false)
        case UInt8(ascii: "}"), UInt8(ascii: "]"): end()
        case UInt8(ascii: ","): expectsName = open.last?.isObject == true
        case UInt8(ascii: "\""): return string()
        default: break
        }
        position += 1
        return nil
    }

    private mutating func begin(isObject: Bool) {
        open.append(Container(isObject: isObject))
        expectsName = isObject
    }

    private mutating func end() {
        expectsName = false
        guard let container = open.popLast(), container.isObject else { return }
        guard let last = open.indices.last else { return names = container.names }
        // An object in an array is not the value of a member.
        if open[last].isObject { open[last].names.set(container.names, of: open[last].name) }
    }

    private mutating func string() -> String? {
        let start = position
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        position += 1
        guard expectsName, let last = open.indices.last, position <= bytes.count else { return nil }
        expectsName = false
        let name = Self.text(bytes[start..<position])
        open[last].name = name
        return open[last].names.add(name) ? nil : name
    }

    /// Decodes a string literal, because a client may write the same name with escapes.
    private static func text(_ literal: ArraySlice<UInt8>) -> String {
        let plain = String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
        guard literal.contains(UInt8(ascii: "\\")) else { return plain }
        let decoded = try? JSONDecoder().decode(
            [String].self,
            from: Data("[".utf8) + Data(literal) + Data("]".utf8)
        )
        return decoded?.first ?? plain
    }
}
