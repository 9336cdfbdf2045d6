internal import Foundation

/// The byte sequences by which a secret is found: the secret itself, and its Base64 forms.
enum SecretForms {
    /// Returns the secret and what Base64 makes of it at each of the three positions in a group of three bytes, in the
    /// standard and in the URL-safe alphabet (RFC 4648 §4 and §5).
    static func of(_ secret: [UInt8]) -> Set<[UInt8]> {
        let encoded = (0..<3).map { base64(secret, after: $0) }
        return Set([secret] + encoded + encoded.map(urlSafe))
    }

    /// Returns the Base64 characters that depend only on the secret.
    ///
    /// A character encodes 6 bits. Those at the ends also depend on the bytes around the secret, so they are left out,
    /// and with them the padding.
    ///
    /// - Parameter offset: The number of bytes before the secret in its first group, 0 to 2.
    private static func base64(_ secret: [UInt8], after offset: Int) -> [UInt8] {
        let bytes = [UInt8](repeating: 0, count: offset) + secret
        let text = Array(Data(bytes).base64EncodedString().utf8)
        return Array(text[(offset * 8 + 5) / 6..<bytes.count * 8 / 6])
    }

    private static func urlSafe(_ base64: [UInt8]) -> [UInt8] {
        base64.map { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: character
            }
        }
    }
}
