internal import Foundation

/// URLs without secrets, for messages, reports and log lines.
///
/// The functions search bytes instead of characters: a combining character after a delimiter forms one `Character` with
/// it. They change nothing but the secrets.
package enum RedactedURL {
    /// The text in place of a secret.
    static let replacement = "REDACTED"

    /// Returns the text of a URL without user name and password, and with `REDACTED` in place of the values of items
    /// with one of ``SecretNames``. A text without such parts is returned as it is.
    package static func text(of url: String) -> String { text(of: url, userInfo: "") }

    /// - Parameter userInfo: What replaces the user name, the password and the `@` after them.
    static func text(of url: String, userInfo: String) -> String {
        let url = URL.replacingUserInfo(in: url, with: userInfo)
        return SecretQueryItems.redacting(url, where: SecretNames.contains)
    }

    /// Returns a text that may be a malformed URL, with `REDACTED` in place of secrets.
    ///
    /// A password may contain `/` or `#`. Everything between the scheme and the last `@` therefore counts as user name
    /// and password.
    package static func text(ofUnchecked url: String) -> String {
        let url = SecretQueryItems.redacting(url, where: SecretNames.contains)
        let bytes = url.utf8
        let start = bytes.firstRange(of: "://".utf8)?.upperBound ?? bytes.startIndex
        guard let end = bytes[start...].lastIndex(of: UInt8(ascii: "@")) else { return url }
        return url[..<start] + replacement + url[end...]
    }

    /// Returns a URL without its user name, password, query and fragment. The last two may contain secrets in items of
    /// any name.
    package static func withoutQuery(_ url: String) -> String {
        let path = Substring(url.utf8.prefix { !"?#".utf8.contains($0) })
        return URL.removingUserInfo(from: String(path))
    }
}
