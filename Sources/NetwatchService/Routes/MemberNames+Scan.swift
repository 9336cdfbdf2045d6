internal import Foundation

/// Collects the names that a client wrote. A decoder keeps either of two members of one name (RFC 8259 §4), so those are
/// refused.
extension MemberNames {
    /// - Parameter json: Valid JSON.
    /// - Throws: ``Problem`` with `malformed_body`, naming the first member that comes twice in its object; also for JSON
    ///   that is not in UTF-8, in which no byte is 0.
    init(of json: [UInt8]) throws(Problem) {
        guard !json.contains(0) else { throw .malformedBody("the body is not UTF-8") }
        var scan = MemberScan(bytes: json)
        while scan.hasMore {
            if let name = scan.step() { throw .malformedBody("the member `\(name.prefix(80))` comes twice") }
        }
        self = scan.names
    }
}

/// Goes through the bytes of valid JSON once.
private struct MemberScan {
    /// An object or an array that is open.
    private struct Container {
        let isObject: Bool
        var names = MemberNames()
        /// The last name that was read.
        var name = ""
    }

    private let bytes: [UInt8]
    private var position = 0
    private var open: [Container] = []
    /// Whether a string would be the name of a member.
    private var expectsName = false
    /// Of the outermost object.
    private(set) var names = MemberNames()

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    var hasMore: Bool { position < bytes.count }

    /// Goes on behind the next token, and returns the name that came twice.
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
        // What is within an array has no property of its own.
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

    /// The same name may be written with escapes.
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
