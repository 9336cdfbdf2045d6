internal import ClientCore

/// The name of a credential, to which stored requests refer.
package enum CredentialName {
    /// The maximum length in bytes.
    private static let maximumBytes = 64

    /// Refuses a name that is not 1 to 64 letters, digits, `.`, `_` and `-`.
    ///
    /// A name is also the name of a file, so it must not be `.` or `..`. Hidden files are excluded, too.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`.
    package static func check(_ name: String) throws(QueueError) {
        guard isValid(name) else {
            // A user may have entered a URL instead.
            let shown = quoted(RedactedURL.text(of: name))
            throw QueueError(
                .invalidOption,
                "the credential name \(shown) is not valid (accepted: 1 to \(maximumBytes) ASCII letters, "
                    + "digits, `.`, `_` and `-`, and no leading `.`)"
            )
        }
    }

    package static func isValid(_ name: String) -> Bool {
        (1...maximumBytes).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                }
            }
    }
}
