internal import Foundation

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
