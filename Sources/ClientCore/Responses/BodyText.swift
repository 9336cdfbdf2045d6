internal import Foundation

/// Readable text for a body.
enum BodyText {
    /// The maximum number of bytes of a body that are shown.
    static let limit = 2000

    /// Returns the body if it is text, truncated to ``limit`` bytes, otherwise its size.
    static func of(_ body: Data?) -> String {
        guard let body else { return "none" }
        guard !body.isEmpty else { return "empty" }
        guard let text = beginning(of: body) else { return "\(body.count) bytes that are not text" }
        return body.count > limit ? "\(text)… (\(body.count) bytes in total)" : text
    }

    /// Returns the text of the first bytes, without a character that the limit has split.
    private static func beginning(of body: Data) -> String? {
        let shown = body.prefix(limit)
        // A character has at most 4 bytes in UTF-8 (RFC 3629 §3), so at most 3 bytes of a split one remain.
        let mayDrop = body.count > limit ? 0...3 : 0...0
        for dropped in mayDrop {
            if let text = String(validating: shown.dropLast(dropped), as: UTF8.self) {
                return text.unicodeScalars.allSatisfy(isShown) ? text : nil
            }
        }
        return nil
    }

    /// Returns whether a terminal displays the character rather than interpreting it.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory != .control || ["\t", "\n", "\r"].contains(scalar)
    }
}
