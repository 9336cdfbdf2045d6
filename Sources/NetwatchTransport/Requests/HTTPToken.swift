/// Validation of HTTP tokens (RFC 9110 §5.6.2). Methods and header names are tokens.
package enum HTTPToken {
    /// Returns whether the text is a token.
    package static func isValid(_ text: String) -> Bool {
        !text.isEmpty && text.allBytes(isTokenCharacter)
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"):
            true
        default:
            "!#$%&'*+.^_`|~".utf8.contains(byte)
        }
    }
}
