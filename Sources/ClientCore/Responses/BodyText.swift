internal import Foundation

/// A body, as far as it makes sense to a reader.
enum BodyText {
    /// How many bytes of a body are shown.
    static let limit = 2000

    /// The body when it is text, cut after ``limit`` bytes; otherwise its size.
    static func of(_ body: Data?) -> String {
        guard let body else { return "none" }
        guard !body.isEmpty else { return "empty" }
        guard let text = beginning(of: body) else { return "\(body.count) bytes that are no text" }
        return body.count > limit ? "\(text)… (\(body.count) bytes in all)" : text
    }

    /// The text of the first bytes, without a character that the limit has cut through.
    private static func beginning(of body: Data) -> String? {
        let shown = body.prefix(limit)
        // UTF-8 has at most 4 bytes for a character (RFC 3629 §3), so at most 3 are left of a cut one.
        let mayDrop = body.count > limit ? 0...3 : 0...0
        for dropped in mayDrop {
            if let text = String(validating: shown.dropLast(dropped), as: UTF8.self) {
                return text.unicodeScalars.allSatisfy(isShown) ? text : nil
            }
        }
        return nil
    }

    /// Whether a terminal shows the character, rather than obeys it.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory != .control || ["\t", "\n", "\r"].contains(scalar)
    }
}
