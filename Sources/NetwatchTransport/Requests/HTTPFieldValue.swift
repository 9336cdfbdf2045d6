/// Validation of HTTP field values (RFC 9110 §5.5).
package enum HTTPFieldValue {
    /// Returns whether the value can be sent. A value must not contain control characters except tabs.
    package static func isValid(_ text: String) -> Bool {
        text.utf8.allSatisfy(isAllowed)
    }

    /// Returns the error message for a value that cannot be sent. The message shows the character that is not allowed.
    /// It does not show the value, which may be a secret.
    package static func refusal(_ name: String, _ value: String) -> String {
        let bytes = Array(value.utf8)
        let position = bytes.firstIndex { !isAllowed($0) } ?? 0
        let character = bytes.isEmpty ? "" : String(UnicodeScalar(bytes[position]))
        return "the value of the header \(name.debugDescription) has \(character.debugDescription) at byte "
            + "\(position + 1); line breaks and control characters other than tab are not allowed"
    }

    private static func isAllowed(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7f) }
}
