internal import Foundation
internal import NetwatchTransport

/// Redacts the parts of a request that must not appear in a log.
///
/// These parts are secrets:
///
/// - the password of the credentials
/// - the user and password in a URL
/// - the value of a header field, query item, form item or JSON member with one of ``SecretNames``
/// - a text body that is neither a form nor JSON, because it cannot be searched
///
/// The path of a URL, and a body that curl reads from a file, are not redacted.
struct CurlSecrets {
    /// Whether secrets are redacted. If this is false, all functions return their argument.
    let isRedacting: Bool

    private static let replacement = "REDACTED"
    private static let formType = "application/x-www-form-urlencoded"

    func value(_ text: String) -> String {
        isRedacting ? Self.replacement : text
    }

    func field(_ field: TransferRequest.Header) -> TransferRequest.Header {
        SecretNames.contains(field.name) ? .init(field.name, value(field.value)) : field
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
        if type.hasPrefix(Self.formType) { return Self.items(text) }
        return (type.contains("json") ? Self.json(text) : nil) ?? Self.replacement
    }

    /// Returns a form or JSON with its secrets replaced. Returns any other text as it is, and so JSON without secrets,
    /// which is not formatted again.
    func replacingKnownSecrets(in text: String, contentType: String?) -> String {
        guard isRedacting else { return text }
        let type = contentType?.lowercased() ?? ""
        if type.hasPrefix(Self.formType) { return Self.items(text) }
        let start = text.unicodeScalars.first { !$0.properties.isWhitespace }
        guard type.contains("json") || start == "{" || start == "[" else { return text }
        return Self.json(text, unless: { !Self.containsSecret($0) }) ?? text
    }

    /// Returns a decoded JSON value with its secrets replaced. Returns any other value as it is.
    func replacingKnownSecrets(in value: Any) -> Any {
        isRedacting && Self.containsSecret(value) ? Self.redacted(value) : value
    }

    private static func containsSecret(_ value: Any) -> Bool {
        switch value {
        case let members as [String: Any]:
            members.contains { SecretNames.contains($0.key) || containsSecret($0.value) }
        case let elements as [Any]: elements.contains(where: containsSecret)
        default: false
        }
    }

    /// Replaces the user and password in `scheme://user:password@host/path`.
    private static func withoutCredentials(_ url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        let authority = url[start...].prefix { $0 != "/" }
        guard let end = authority.lastIndex(of: "@") else { return url }
        return url[..<start] + replacement + url[end...]
    }

    /// Redacts a query or a form: `name=value&name=value`. Items may also be separated by semicolons, as old servers
    /// do.
    private static func items(_ text: String) -> String {
        pieces(text, "&").map { pieces($0, ";").map(item).joined(separator: ";") }.joined(separator: "&")
    }

    private static func item(_ text: String) -> String {
        let (name, value) = halves(text, at: "=")
        let isSecret = value != nil && SecretNames.contains(name.removingPercentEncoding ?? name)
        return isSecret ? "\(name)=\(replacement)" : text
    }

    /// Returns the text before the first separator, and the text after it if there is one.
    private static func halves(_ text: String, at separator: Unicode.Scalar) -> (String, String?) {
        let parts = pieces(text, separator, maxSplits: 1)
        return (parts[0], parts.count > 1 ? parts[1] : nil)
    }

    /// Splits the text at Unicode scalars. Splitting at characters would miss a separator with a combining accent.
    private static func pieces(
        _ text: String,
        _ separator: Unicode.Scalar,
        maxSplits: Int = .max
    ) -> [String] {
        text.unicodeScalars
            .split(separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: false)
            .map(String.init)
    }

    /// Redacts JSON; returns `nil` if the text is not JSON, or if `isExempt` returns true for its value.
    private static func json(_ text: String, unless isExempt: (Any) -> Bool = { _ in false }) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
        let options: JSONSerialization.WritingOptions = [
            .fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes,
        ]
        guard let object, !isExempt(object),
            let data = try? JSONSerialization.data(withJSONObject: redacted(object), options: options)
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private static func redacted(_ value: Any) -> Any {
        switch value {
        case let members as [String: Any]:
            Dictionary(
                uniqueKeysWithValues: members.map { name, value in
                    (name, SecretNames.contains(name) ? replacement : redacted(value))
                }
            )
        case let elements as [Any]: elements.map(redacted)
        default: value
        }
    }
}
