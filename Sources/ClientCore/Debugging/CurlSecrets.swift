internal import Foundation
internal import NetwatchTransport

/// Redacts the parts of a request that must not appear in a log.
///
/// Secrets are: a password, the user information of a URL, the fields `Authorization`, `Proxy-Authorization`,
/// `Cookie` and `Set-Cookie`, and every value whose name suggests a secret. Such values are other header
/// fields, items of a query or a form, and members of JSON objects. A body that is neither a form nor JSON
/// cannot be searched, so it is redacted completely. Paths and bodies in files are not redacted.
struct CurlSecrets {
    let isRedacting: Bool

    private static let replacement = "REDACTED"
    private static let secretWords = [
        "token", "secret", "key", "password", "passwd", "passphrase", "signature",
    ]
    /// Names that look like secrets but are not.
    private static let exceptions = ["idempotency-key"]

    func value(_ text: String) -> String {
        isRedacting ? Self.replacement : text
    }

    func field(_ field: TransferRequest.Header) -> TransferRequest.Header {
        let isSecret =
            SecretHeaderFields.all.contains(field.name.lowercased()) || Self.suggestsSecret(field.name)
        return isSecret ? .init(field.name, value(field.value)) : field
    }

    func url(_ url: String) -> String {
        guard isRedacting else { return url }
        let (base, query) = Self.halves(url, at: "?")
        let host = Self.withoutCredentials(base)
        return query.map { "\(host)?\(Self.items($0))" } ?? host
    }

    func body(_ text: String, contentType: String?) -> String {
        guard isRedacting, !text.isEmpty else { return text }
        let type = contentType?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") { return Self.items(text) }
        return (type.contains("json") ? Self.json(text) : nil) ?? Self.replacement
    }

    private static func suggestsSecret(_ name: String) -> Bool {
        let name = name.lowercased()
        return !exceptions.contains(name) && secretWords.contains(where: name.contains)
    }

    /// `scheme://user:password@host/path`
    private static func withoutCredentials(_ url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        let authority = url[start...].prefix { $0 != "/" }
        guard let end = authority.lastIndex(of: "@") else { return url }
        return url[..<start] + replacement + url[end...]
    }

    /// Redacts a query or a form: `name=value&name=value`. Old servers separate the items by semicolons.
    private static func items(_ text: String) -> String {
        pieces(text, "&").map { pieces($0, ";").map(item).joined(separator: ";") }.joined(separator: "&")
    }

    private static func item(_ text: String) -> String {
        let (name, value) = halves(text, at: "=")
        let isSecret = value != nil && suggestsSecret(name.removingPercentEncoding ?? name)
        return isSecret ? "\(name)=\(replacement)" : text
    }

    /// Returns the text before the first separator, and the text after it if there is one.
    private static func halves(_ text: String, at separator: Unicode.Scalar) -> (String, String?) {
        let parts = pieces(text, separator, maxSplits: 1)
        return (parts[0], parts.count > 1 ? parts[1] : nil)
    }

    /// Splits by Unicode scalars, because a separator followed by a combining accent must still separate.
    private static func pieces(
        _ text: String,
        _ separator: Unicode.Scalar,
        maxSplits: Int = .max
    ) -> [String] {
        text.unicodeScalars
            .split(separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: false)
            .map(String.init)
    }

    /// - Returns: `nil` if the text is not JSON.
    private static func json(_ text: String) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
        let options: JSONSerialization.WritingOptions = [
            .fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes,
        ]
        guard let object,
            let data = try? JSONSerialization.data(withJSONObject: redacted(object), options: options)
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private static func redacted(_ value: Any) -> Any {
        switch value {
        case let members as [String: Any]:
            Dictionary(
                uniqueKeysWithValues: members.map { name, value in
                    (name, suggestsSecret(name) ? replacement : redacted(value))
                }
            )
        case let elements as [Any]: elements.map(redacted)
        default: value
        }
    }
}
