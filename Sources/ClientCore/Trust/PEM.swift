internal import Foundation

/// RFC 7468: bytes as text between two lines that say what they are.
struct PEMBlock: Equatable {
    /// `CERTIFICATE`, `PRIVATE KEY`, …
    let label: String
    /// All of it with its two lines, for what is encrypted: the header fields inside are OpenSSL's to read.
    let text: Data
    /// The bytes; `nil` where there is no base64 alone, as in a key that is encrypted the old way.
    let contents: Data?
}

enum PEM {
    private static let begin = Data("-----BEGIN ".utf8)
    private static let end = Data("-----END ".utf8)
    private static let dashes = Data("-----".utf8)
    /// Longer ones are in no standard.
    private static let longestLabel = 64

    /// Whether there is a beginning of a block in it, at which it is no DER.
    static func looksLike(_ data: Data) -> Bool { data.range(of: begin) != nil }

    /// The blocks that are whole, in their order; what is between them are comments.
    ///
    /// - Returns: `nil` when one begins that does not end.
    static func blocks(in data: Data) -> [PEMBlock]? {
        var blocks: [PEMBlock] = []
        var rest = data[...]
        while let start = rest.range(of: begin) {
            guard let block = block(in: rest[start.lowerBound...]) else { return nil }
            blocks.append(block)
            rest = rest[block.text.endIndex...]
        }
        return blocks
    }

    /// The block that the text begins with.
    private static func block(in text: Data) -> PEMBlock? {
        let afterBegin = text[(text.startIndex + begin.count)...]
        // Looked for no further than it may be, or many beginnings without an end would take a square of time.
        guard let labelEnd = afterBegin.prefix(longestLabel + dashes.count).range(of: dashes) else {
            return nil
        }
        let label = afterBegin[..<labelEnd.lowerBound]
        guard let end = text.range(of: end + label + dashes) else { return nil }
        return PEMBlock(
            label: String(decoding: label, as: UTF8.self),
            text: text[..<end.upperBound],
            contents: decoded(text[labelEnd.upperBound..<end.lowerBound])
        )
    }

    private static func decoded(_ base64: Data) -> Data? {
        let lines = base64.filter { !isSpace($0) }
        return lines.isEmpty ? nil : Data(base64Encoded: Data(lines))
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

    /// One block, which ends with a line break.
    static func encoded(_ der: Data, label: String) -> [UInt8] {
        let base64 = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Array("-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n".utf8)
    }
}
