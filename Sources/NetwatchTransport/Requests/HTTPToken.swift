/// Validation of HTTP tokens (RFC 9110 §5.6.2). Methods and header names are tokens.
package enum HTTPToken {
    /// Returns whether the text is a token.
    package static func isValid(_ text: String) -> Bool {
        !text.utf8.isEmpty && text.utf8.allSatisfy(isTokenCharacter)
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

extension String {
    /// Returns whether two tokens are equal except for the case of ASCII letters.
    func equalsIgnoringCase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
}
