internal import Foundation

/// Looks for objects that name a member twice, of which a decoder would keep either (RFC 8259 §4).
struct DuplicateMembers {
    /// - Parameter json: Valid JSON.
    /// - Throws: ``Problem`` with `malformed_body`, naming the first member that comes twice; also for JSON that is not
    ///   in UTF-8, in which no byte is 0.
    static func check(_ json: Data) throws(Problem) {
        guard !json.contains(0) else { throw .malformedBody("the body is not UTF-8") }
        var scan = DuplicateMembers(bytes: Array(json))
        while scan.position < scan.bytes.count {
            if let name = scan.step() { throw .malformedBody("the member `\(name.prefix(80))` comes twice") }
        }
    }

    private let bytes: [UInt8]
    private var position = 0
    /// The names so far of each object that is open; `nil` for an array.
    private var open: [Set<String>?] = []
    /// Whether a string would be the name of a member.
    private var expectsName = false

    /// Goes on behind the next token, and returns the name that came twice.
    private mutating func step() -> String? {
        switch bytes[position] {
        case UInt8(ascii: "{"):
            open.append([])
            expectsName = true
        case UInt8(ascii: "["):
            open.append(nil)
            expectsName = false
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            _ = open.popLast()
            expectsName = false
        case UInt8(ascii: ","): expectsName = (open.last ?? nil) != nil
        case UInt8(ascii: "\""): return string()
        default: break
        }
        position += 1
        return nil
    }

    private mutating func string() -> String? {
        let start = position
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        position += 1
        guard expectsName, !open.isEmpty, position <= bytes.count else { return nil }
        expectsName = false
        let name = Self.text(bytes[start..<position])
        return open[open.count - 1]?.insert(name).inserted == false ? name : nil
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
