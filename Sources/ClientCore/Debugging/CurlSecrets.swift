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

    /// The formats of bodies in which secrets are found.
    enum Format {
        case form, json
    }

    private static let replacement = RedactedURL.replacement

    func value(_ text: String) -> String {
        isRedacting ? Self.replacement : text
    }

    func field(_ field: TransferRequest.Header) -> TransferRequest.Header {
        SecretNames.contains(field.name) ? .init(field.name, value(field.value)) : field
    }

    func url(_ url: String) -> String {
        isRedacting ? RedactedURL.text(of: url, userInfo: Self.replacement + "@") : url
    }

    /// Returns a body with its secrets replaced. Returns `REDACTED` for a body that cannot be searched.
    func body(_ text: String, contentType: String?) -> String {
        guard isRedacting, !text.isEmpty else { return text }
        return switch Self.format(contentType) {
        case .form: Self.form(text)
        case .json: Self.json(text) ?? Self.replacement
        case nil: Self.replacement
        }
    }

    /// Returns a form or JSON with its secrets replaced. Returns any other text as it is. JSON without secrets is also
    /// returned as it is, without new formatting.
    func replacingKnownSecrets(in text: String, contentType: String?) -> String {
        guard isRedacting else { return text }
        return switch Self.format(contentType, bytes: text.utf8) {
        case .form: Self.form(text)
        case .json: Self.json(text, unless: { !Self.containsSecret($0) }) ?? text
        case nil: text
        }
    }

    /// Returns a decoded JSON value with its secrets replaced. Returns any other value as it is.
    func replacingKnownSecrets(in value: Any) -> Any {
        isRedacting && Self.containsSecret(value) ? Self.redacted(value) : value
    }

    /// Returns the format of a body with this type; `nil` if its secrets cannot be found.
    ///
    /// - Parameter bytes: If the type is neither a form nor JSON, a body that begins with a brace or a bracket is JSON.
    ///   Default: none, only the type counts.
    static func format(
        _ contentType: String?,
        bytes: some Sequence<UInt8> = EmptyCollection<UInt8>()
    ) -> Format? {
        let type = contentType?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") { return .form }
        let first = bytes.first { !" \t\n\r".utf8.contains($0) }
        return type.contains("json") || first.map("{[".utf8.contains) == true ? .json : nil
    }

    private static func containsSecret(_ value: Any) -> Bool {
        switch value {
        case let members as [String: Any]:
            members.contains { SecretNames.contains($0.key) || containsSecret($0.value) }
        case let elements as [Any]: elements.contains(where: containsSecret)
        default: false
        }
    }

    private static func form(_ text: String) -> String {
        SecretQueryItems.redactingItems(of: text[...], where: SecretNames.contains)
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
