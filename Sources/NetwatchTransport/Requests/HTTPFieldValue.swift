/// Validation of HTTP field values (RFC 9110 §5.5).
package enum HTTPFieldValue {
    /// Returns whether the value can be sent. A value must not contain control characters except tabs.
    package static func isValid(_ text: String) -> Bool {
        text.allBytes(isAllowed)
    }

    /// Returns the error message if the value of a header field cannot be sent, and `nil` if it can. The message shows
    /// the character that is not allowed. It does not show the value, which may be a secret.
    package static func fault(of value: String, in name: String) -> String? {
        guard !isValid(value), let position = value.utf8.firstIndex(where: { !isAllowed($0) })
        else { return nil }
        let character = String(UnicodeScalar(value.utf8[position]))
        let byte = value.utf8.distance(from: value.startIndex, to: position) + 1
        return "the value of the header \(HTTPRequestRules.shown(name)) has \(character.debugDescription) "
            + "at byte \(byte); line breaks and control characters other than tab are not allowed"
    }

    private static func isAllowed(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7f) }
}
