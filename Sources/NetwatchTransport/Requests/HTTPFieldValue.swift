/// A field value (RFC 9110 §5.5).
package enum HTTPFieldValue {
    /// Returns whether the value can be sent: it contains no control characters except tabs.
    package static func isValid(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }
    }

    /// Returns the error message for a value that cannot be sent.
    package static func refusal(_ name: String, _ value: String) -> String {
        "the header \(name.debugDescription) cannot have the value \(value.debugDescription): "
            + "line breaks and control characters other than tab are not allowed"
    }
}
