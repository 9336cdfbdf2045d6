internal import Foundation

/// Collects the member names in a client's JSON. Duplicate names are rejected, because a decoder may keep either member
/// (RFC 8259 §4).
extension MemberNames {
    /// - Parameter json: Valid JSON.
    /// - Throws: ``Problem`` with `malformed_body`, which names the first duplicate member of an object. Also thrown if
    ///   the JSON is not UTF-8: UTF-8 JSON contains no zero byte.
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

    /// Advances past the next token. Returns the member name if it is a duplicate.
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
        // Objects inside an array belong to no property.
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

    /// Decodes a string literal, because the same name may be written with escapes.
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
