internal import Foundation

/// The `%` characters of URLs that begin no escape, for example in `/100%/zz`. Foundation's `URL` cannot contain them,
/// but a server expects them back unchanged.
///
/// While Foundation resolves a URL, an escape that occurs nowhere else stands in for each of them.
struct BarePercents {
    /// The escape that takes the place of a bare `%`.
    private let standIn: String
    /// Whether the texts contain a bare `%`, and ``standIn`` can be distinguished from their other escapes.
    private let areKept: Bool

    /// - Parameter texts: All texts whose bare `%` characters are replaced. If they contain every escape from `%80` to
    ///   `%FF`, none stands in, and a bare `%` becomes `%25`.
    init(in texts: [String]) {
        let free = texts.contains(where: Self.occur) ? Self.escape(absentFrom: texts) : nil
        standIn = free ?? Self.encoded
        areKept = free != nil
    }

    /// Returns a text that Foundation's `URL` can contain.
    func replaced(in text: String) -> String {
        guard Self.occur(in: text) else { return text }
        let bytes = Array(text.utf8)
        let replaced = bytes.indices.flatMap { index in
            Self.isBare(bytes[index...]) ? Array(standIn.utf8) : [bytes[index]]
        }
        return String(decoding: replaced, as: UTF8.self)
    }

    /// Returns the text with `%25` in place of the stand-ins.
    func encoded(in text: String) -> String {
        areKept ? text.replacing(standIn, with: Self.encoded) : text
    }

    /// Returns the text with the bare `%` characters; `nil` if it has none.
    func restored(in text: String) -> String? {
        areKept && text.contains(standIn) ? text.replacing(standIn, with: "%") : nil
    }

    private static let encoded = "%25"

    private static func escape(absentFrom texts: [String]) -> String? {
        let texts = texts.map { $0.uppercased() }
        return (0x80...0xff).lazy.map { "%" + String($0, radix: 16, uppercase: true) }
            .first { escape in !texts.contains { $0.contains(escape) } }
    }

    private static func occur(in text: String) -> Bool {
        var rest = Substring(text).utf8
        while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[percent...]
            if isBare(rest) { return true }
            rest = rest.dropFirst()
        }
        return false
    }

    /// Whether the bytes begin with a `%` that two hexadecimal digits do not follow.
    static func isBare(_ bytes: some Collection<UInt8>) -> Bool {
        guard bytes.first == UInt8(ascii: "%") else { return false }
        let digits = bytes.dropFirst().prefix(2)
        return digits.count < 2 || !digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }
}
