internal import Foundation
internal import NetwatchTransport

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

/// The items of a URL's query that contain secrets.
///
/// A query is a list of items, `name=value`, which `&` separates. The functions that redact also find items after `;`
/// and in the fragment. The functions change nothing else in a URL: they do not decode and encode it again.
package enum SecretQueryItems {
    /// The names of the items that are certainly secrets, in lower case. The queue refuses a URL with such an item.
    ///
    /// The list does not contain names that often mean something else, such as `key`, `id` and `hash`, nor those of
    /// ``redacted``. It does not contain the parts of a signed URL that are useless without the signature, such as
    /// `X-Amz-Credential`, `OSSAccessKeyId` and `q-ak`.
    package static let names: Set<String> = signatures.union([
        "access_key", "access_token", "accesskey", "api_key", "api_secret", "api_token", "api-key", "apikey",
        "apitoken", "auth_token", "auth-token", "authtoken", "client_secret", "id_token", "job_token", "jwt",
        "oauth_signature", "oauth_token", "passphrase", "passwd", "password", "private_token", "pwd",
        "refresh_token", "secret", "secret_key", "subscription-key", "token", "x-api-key", "x-auth-token",
    ])

    /// The names of the items whose values descriptions and reports do not show, in lower case: ``names``, and names
    /// that are secrets in some APIs, such as the `code` of OAuth.
    package static let redacted = names.union([
        "code", "credential", "credentials", "session", "session_id", "sessionid", "sid",
    ])

    /// The items of signed URLs, in lower case. They permit one operation on one resource until the signature expires.
    ///
    /// The names are those of Amazon S3, Google Cloud Storage, Azure, Alibaba Cloud OSS, Tencent Cloud COS and Huawei
    /// Cloud OBS.
    package static let signatures: Set<String> = [
        "q-signature", "security-token", "sig", "signature", "x-amz-security-token", "x-amz-signature",
        "x-cos-security-token", "x-goog-signature", "x-obs-security-token", "x-oss-security-token",
        "x-oss-signature",
    ]

    /// Returns whether a URL contains an item of a signed URL.
    package static func isSigned(_ url: String) -> Bool {
        firstName(in: url, except: names.subtracting(signatures)) != nil
    }

    /// Returns the name of the first item that contains a secret; `nil` if there is none. An item without a value
    /// contains none.
    ///
    /// - Parameter accepted: The names in lower case of items that do not count. Default: none.
    package static func firstName(in url: String, except accepted: Set<String> = []) -> String? {
        guard let query = query(of: url) else { return nil }
        return pieces(of: url[query], at: "&").lazy.compactMap { name(of: $0, where: names.contains) }
            .first { !accepted.contains(decoded($0)) }
    }

    /// Returns the URL with `REDACTED` in place of the values of the items of ``redacted``.
    package static func redacting(_ url: String) -> String { redacting(url, where: redacted.contains) }

    /// Returns the URL with `REDACTED` in place of the values of some items of the query and the fragment.
    ///
    /// - Parameter isSecret: Whether the value of an item with this decoded, lower-case name is replaced.
    static func redacting(_ url: String, where isSecret: (String) -> Bool) -> String {
        guard let mark = url.utf8.firstIndex(where: { "?#".utf8.contains($0) }) else { return url }
        let begin = url.utf8.index(after: mark)
        return url[..<begin] + redactingItems(of: url[begin...], where: isSecret)
    }

    /// Returns a query, a fragment or a form with `REDACTED` in place of the values of some items.
    ///
    /// - Parameters:
    ///   - text: The text after the question mark or the number sign. A query may contain the fragment.
    ///   - isSecret: Whether the value of an item with this decoded, lower-case name is replaced.
    static func redactingItems(of text: Substring, where isSecret: (String) -> Bool) -> String {
        let parts = pieces(of: text, at: "#").map { part in
            pieces(of: part, at: "&").map { redactingItem($0, where: isSecret) }.joined(separator: "&")
        }
        return parts.joined(separator: "#")
    }

    /// Returns the item without secret values.
    ///
    /// The item may contain others, after `;`, with which old servers separate items, or after `?`, as in the fragment
    /// `#/path?name=value`. The value of a secret may contain both, too, so it is replaced up to the end of the item.
    private static func redactingItem(_ item: Substring, where isSecret: (String) -> Bool) -> String {
        let bytes = item.utf8
        let delimiters = bytes.indices.filter { ";?".utf8.contains(bytes[$0]) }
        for begin in [item.startIndex] + delimiters.map({ bytes.index(after: $0) }) {
            if let name = name(of: item[begin...], where: isSecret) {
                return "\(item[..<begin])\(name)=REDACTED"
            }
        }
        return String(item)
    }

    /// Returns the URL without the items that contain secrets.
    package static func removing(from url: String) -> String {
        guard let query = query(of: url), firstName(in: url) != nil else { return url }
        let kept = pieces(of: url[query], at: "&").filter { name(of: $0, where: names.contains) == nil }
        // Without items, the question mark is removed, too.
        let start = kept.isEmpty ? url.utf8.index(before: query.lowerBound) : query.lowerBound
        return url[..<start] + kept.joined(separator: "&") + url[query.upperBound...]
    }

    /// Returns the range of the query, without the question mark; `nil` if the URL has none.
    private static func query(of url: String) -> Range<String.Index>? {
        let bytes = url.utf8
        let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        guard let mark = bytes[..<end].firstIndex(of: UInt8(ascii: "?")) else { return nil }
        return bytes.index(after: mark)..<end
    }

    /// Splits the text at an ASCII character.
    ///
    /// The functions search bytes instead of characters: a combining character after a delimiter forms one `Character`
    /// with it.
    private static func pieces(of text: Substring, at delimiter: Unicode.Scalar) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: delimiter), omittingEmptySubsequences: false)
            .map { Substring($0) }
    }

    /// Returns the name of an item as it is written; `nil` if it is no secret or the item has no value.
    private static func name(of item: Substring, where isSecret: (String) -> Bool) -> String? {
        let bytes = item.utf8
        guard let end = bytes.firstIndex(where: { "=;?".utf8.contains($0) }), bytes[end] == UInt8(ascii: "="),
            bytes.index(after: end) < bytes.endIndex
        else { return nil }
        let name = String(item[..<end])
        return isSecret(decoded(name)) ? name : nil
    }

    private static func decoded(_ name: String) -> String {
        (name.removingPercentEncoding ?? name).lowercased()
    }
}

/// The names of header fields, query items, form items and JSON members whose values the client's texts do not show.
/// These texts are descriptions, error messages and cURL commands.
///
/// The names are those of ``SecretHeaderFields`` and ``SecretQueryItems``, and others that suggest a secret. Decisions
/// use the two lists alone, for example which fields a redirect drops and which requests the queue refuses. So do the
/// queue's reports, in which the URL identifies a request.
enum SecretNames {
    /// Parts of names that suggest a secret.
    private static let words = ["token", "secret", "key", "password", "passwd", "passphrase", "signature"]
    /// Names that contain one of ``words`` but do not denote a secret.
    private static let exceptions: Set<String> = ["idempotency-key"]

    /// - Parameter name: The name in any case, after percent-decoding.
    static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return SecretHeaderFields.all.contains(name) || SecretQueryItems.redacted.contains(name)
            || !exceptions.contains(name) && words.contains(where: name.contains)
    }
}
