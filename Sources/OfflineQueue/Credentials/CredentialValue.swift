public import ClientCore
internal import Foundation
internal import NetwatchTransport

/// A secret, and where in a request it is sent.
///
/// The text of a value (`description`, `dump`) contains no secret.
public enum CredentialValue: Hashable, Sendable {
    /// A token of RFC 6750: `Authorization: Bearer TOKEN`.
    case bearer(String)
    /// A user name without a colon, and a password (RFC 7617), in UTF-8.
    case basic(user: String, password: String)
    /// A header field. It replaces the request's fields of the same name.
    case header(name: String, value: String)
    /// An item that is added to the query of the URL: `name=value`, percent-encoded.
    case queryItem(name: String, value: String)
    /// A client's certificate and key, which are used if the server asks for a certificate. The request must go to an
    /// `https` origin.
    case clientCertificate(ClientIdentity)
}

extension CredentialValue: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of the value, without secrets.
    public var description: String {
        switch self {
        case .bearer: "bearer"
        case .basic: "basic"
        case .header(let name, _): "header \(quoted(name))"
        case .queryItem(let name, _): "query item \(quoted(name))"
        case .clientCertificate: "client certificate"
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// A mirror without the secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension CredentialValue {
    /// The reason why the value cannot be sent; `nil` if it can. It contains no secret.
    package var fault: String? {
        switch self {
        case .bearer(let token):
            Self.isText(token) && !token.contains(" ")
                ? nil : "the token is empty or contains spaces or control characters"
        case .basic(let user, _) where user.contains(":") || !Self.isText(user):
            "the user name is empty, or contains a colon or control characters"
        case .basic(_, let password):
            Self.isText(password) ? nil : "the password is empty or contains control characters"
        case .header(let name, let value): Self.fault(ofHeader: name, value)
        case .queryItem(let name, let value):
            name.isEmpty || value.isEmpty ? "the name or the value of the query item is empty" : nil
        case .clientCertificate: nil
        }
    }

    private static func fault(ofHeader name: String, _ value: String) -> String? {
        do {
            try RequestChecks.checkHeaderName(name, for: .send)
        } catch {
            return error.message
        }
        return isText(value) ? nil : "the value of the header field is empty or contains control characters"
    }

    private static func isText(_ text: String) -> Bool { !text.isEmpty && HTTPFieldValue.isValid(text) }

    /// Returns the URL and the header lines of a request to which the value was added.
    func added(to url: String, _ headers: [QueueRequest.Header]) -> (String, [QueueRequest.Header]) {
        switch self {
        case .bearer(let token): (url, Self.set("Authorization", "Bearer \(token)", in: headers))
        case .basic(let user, let password):
            (
                url,
                Self.set(
                    "Authorization",
                    "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())",
                    in: headers
                )
            )
        case .header(let name, let value): (url, Self.set(name, value, in: headers))
        case .queryItem(let name, let value):
            (Self.adding("\(Self.escaped(name))=\(Self.escaped(value))", to: url), headers)
        case .clientCertificate: (url, headers)
        }
    }

    /// The client's certificate and key; `nil` for other kinds.
    var identity: ClientIdentity? {
        if case .clientCertificate(let identity) = self { identity } else { nil }
    }

    private static func set(
        _ name: String,
        _ value: String,
        in headers: [QueueRequest.Header]
    ) -> [QueueRequest.Header] {
        headers.filter { $0.name.lowercased() != name.lowercased() } + [.init(name: name, value: value)]
    }

    private static func adding(_ item: String, to url: String) -> String {
        let end = url.firstIndex(of: "#") ?? url.endIndex
        let base = url[..<end]
        let separator = !base.contains("?") ? "?" : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        return base + separator + item + url[end...]
    }

    private static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "-._~").union(
            CharacterSet(charactersIn: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        )
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }
}
