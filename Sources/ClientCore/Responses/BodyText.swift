internal import Foundation
internal import NetwatchEventLoop

/// Describes a body in a readable form, for debug descriptions.
enum BodyText {
    /// The maximum number of bytes of a body that are shown.
    static let limit = 2000

    /// Returns the body, truncated to ``limit`` bytes, if it is text. Returns the size of any other body.
    ///
    /// - Parameter total: The size that is shown. Default `nil`: the size of the body.
    static func of(_ body: Data?, total: Int? = nil) -> String {
        guard let body else { return "none" }
        guard !body.isEmpty else { return "empty" }
        let size = total ?? body.count
        guard let text = beginning(of: body) else { return "\(size) bytes that are not text" }
        return body.count > limit ? "\(text)… (\(size) bytes in total)" : text
    }

    /// Returns the same as ``of(_:total:)``, with `REDACTED` in place of the secrets of a form or JSON.
    ///
    /// JSON that is incomplete or invalid is shown as it is.
    static func of(_ body: Data?, contentType: String?) -> String {
        // Only these formats are decoded: the body may be an image of many megabytes.
        guard let body, CurlSecrets.format(contentType, bytes: body) != nil else { return of(body) }
        let (text, secrets) = (String(decoding: body, as: UTF8.self), CurlSecrets(isRedacting: true))
        let redacted = secrets.replacingKnownSecrets(in: text, contentType: contentType)
        return redacted == text ? of(body) : of(Data(redacted.utf8), total: body.count)
    }

    /// Returns the first bytes as text, without a character that the limit would split, and with escapes for characters
    /// that are not printable; `nil` if they are not text.
    private static func beginning(of body: Data) -> String? {
        let shown = body.prefix(limit)
        // A character has at most 4 bytes in UTF-8 (RFC 3629 §3), so at most 3 bytes of a split character remain.
        let mayDrop = body.count > limit ? 0...3 : 0...0
        for dropped in mayDrop {
            if let text = String(validating: shown.dropLast(dropped), as: UTF8.self) {
                guard text.unicodeScalars.allSatisfy(isText) else { return nil }
                return text.printable(upTo: .max, keeping: layout)
            }
        }
        return nil
    }

    /// The control characters that a text may contain.
    private static let layout: Set<Unicode.Scalar> = ["\t", "\n", "\r"]

    private static func isText(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory != .control || layout.contains(scalar)
    }
}
