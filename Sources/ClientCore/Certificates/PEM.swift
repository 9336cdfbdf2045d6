internal import Foundation

/// A PEM block (RFC 7468): base64 between a BEGIN and an END line that contain a label.
struct PEMBlock: Equatable {
    /// `CERTIFICATE`, `PRIVATE KEY`, …
    let label: String
    /// The whole block with its BEGIN and END lines. Encrypted keys need it, because OpenSSL reads the header fields
    /// inside.
    let text: Data
    /// The decoded bytes; `nil` if the block is not pure base64, as with a key in the traditional encrypted format.
    let contents: Data?
}

enum PEM {
    private static let begin = Data("-----BEGIN ".utf8)
    private static let end = Data("-----END ".utf8)
    private static let dashes = Data("-----".utf8)
    /// No standard has longer labels.
    private static let longestLabel = 64

    /// Returns whether the data contains a BEGIN line and is therefore not treated as DER.
    static func looksLike(_ data: Data) -> Bool { data.range(of: begin) != nil }

    /// Returns the complete blocks in their order. Text between blocks is a comment.
    ///
    /// - Returns: `nil` if a block begins but does not end.
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

    /// Returns the block at the start of the text.
    private static func block(in text: Data) -> PEMBlock? {
        let afterBegin = text[(text.startIndex + begin.count)...]
        // The search is limited to the longest label. Otherwise many BEGIN lines without an END would take quadratic
        // time.
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

    /// Returns one PEM block that ends with a line break.
    static func encoded(_ der: Data, label: String) -> [UInt8] {
        let base64 = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Array("-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n".utf8)
    }
}
