internal import Foundation

/// A PEM block (RFC 7468): base64 between a BEGIN and an END line with the same label.
struct PEMBlock: Equatable {
    /// The label of the BEGIN line, such as `CERTIFICATE` or `PRIVATE KEY`.
    let label: String
    /// The whole block with its BEGIN and END lines. A private key is passed to OpenSSL as this text, because an
    /// encrypted key can have header fields after the BEGIN line.
    let text: Data
    /// The decoded base64; `nil` if the block contains anything else. For example, an encrypted key in a format older
    /// than PKCS#8 also contains header fields.
    let contents: Data?
}

/// Parses and writes PEM (RFC 7468).
enum PEM {
    private static let begin = Data("-----BEGIN ".utf8)
    private static let end = Data("-----END ".utf8)
    private static let dashes = Data("-----".utf8)
    /// The maximum length of a label in bytes. No standard has longer ones.
    private static let longestLabel = 64

    /// Returns whether the data contains a BEGIN line. Data without one is treated as DER.
    static func looksLike(_ data: Data) -> Bool { data.range(of: begin) != nil }

    /// Returns the blocks in the order of the data. Text between blocks is ignored.
    ///
    /// - Returns: `nil` if a block has no END line with the same label.
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
        // The search is limited to the maximum length of a label. Without the limit, data with many BEGIN lines that
        // lack their closing dashes would take quadratic time.
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

    /// Returns a PEM block with the given contents. It ends with a line break, so that blocks can be concatenated.
    static func encoded(_ der: Data, label: String) -> [UInt8] {
        let base64 = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Array("-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n".utf8)
    }
}
