public import ClientCore
internal import Foundation
internal import FoundationNetworking
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

/// The secrets that a credential, an adapter or the session added to an attempt.
///
/// If an adapter or an interceptor throws, it returns no request, so the secrets that it added are not known. Its error
/// may contain them, or the response of a token service. Only the secrets of the request's credential are removed from
/// such an error.
struct AddedSecrets {
    /// What added the secrets.
    enum Source {
        /// A credential: everything that it adds is a secret.
        case credential
        /// The session or its adapter, which also add other values. Only fields and items with the names of
        /// `SecretHeaderFields` and `SecretQueryItems` are certainly secrets.
        case session
    }

    let values: Set<Redactor.Secret>

    /// - Parameters:
    ///   - url: The URL that is sent.
    ///   - headers: The header lines that are sent.
    ///   - original: The attempt to which they were added.
    init(url: String, headers: [QueueRequest.Header], besides original: Attempt, by source: Source) {
        let own = Set(original.headers.map(Self.comparable))
        let changed = headers.map(Self.comparable).filter {
            !own.contains($0) && !Self.publicFields.contains($0.name)
        }
        guard !changed.isEmpty || url != original.url else {
            values = []
            return
        }
        // `URLRequest` joins the values of a repeated field, and may spell the URL differently.
        let unchanged = URLRequest(original)
        let joined = (unchanged?.allHTTPHeaderFields ?? [:]).map {
            Self.comparable(QueueRequest.Header(name: $0, value: $1))
        }
        let added = changed.filter { !joined.contains($0) }
        let urls = [original.url, unchanged?.url?.absoluteString ?? ""]
        let isCredential = source == .credential
        let fields = added.flatMap { Self.secrets(in: $0, isCredential) }
        values = Set(fields + Self.secrets(in: url, besides: urls, isCredential))
    }

    /// Returns a header field with its name in lower case.
    private static func comparable(_ field: QueueRequest.Header) -> QueueRequest.Header {
        QueueRequest.Header(name: field.name.lowercased(), value: field.value)
    }

    /// Fields that contain no secret. Their values occur in responses and would be replaced there.
    private static let publicFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-encoding",
        "content-language", "content-type", "date", "from", "host", "idempotency-key", "if-match",
        "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "prefer", "range", "referer",
        "traceparent", "user-agent", "x-correlation-id", "x-request-id",
    ]
}

// MARK: - Header fields

extension AddedSecrets {
    private static func secrets(in field: QueueRequest.Header, _ isCredential: Bool) -> [Redactor.Secret] {
        if field.name == "cookie" { return cookies(in: field.value) }
        let isCertain = isCredential || SecretHeaderFields.request.contains(field.name)
        let whole = Redactor.Secret(value: field.value, isCertain: isCertain)
        return field.name.hasSuffix("authorization") ? [whole] + credentials(in: field.value) : [whole]
    }

    /// Returns the parts of `SCHEME CREDENTIALS` (RFC 9110 §11.4). Without a scheme, the whole value is returned.
    private static func credentials(in value: String) -> [Redactor.Secret] {
        let parts = value.split(separator: " ").map(String.init)
        guard parts.count > 1 else { return [] }
        // Schemes such as Digest have several parameters, which are not secret one by one.
        let tokens = parts.dropFirst().map { Redactor.Secret(value: $0, isCertain: parts.count == 2) }
        return tokens + (parts[0].lowercased() == "basic" ? basicSecrets(parts[1]) : [])
    }

    /// Returns the password of RFC 7617's `user:password` in Base64, and both together.
    private static func basicSecrets(_ encoded: String) -> [Redactor.Secret] {
        guard let data = Data(base64Encoded: encoded), let text = String(data: data, encoding: .utf8),
            let colon = text.firstIndex(of: ":")
        else { return [] }
        return [text, String(text[text.index(after: colon)...])].map {
            Redactor.Secret(value: $0, isCertain: true)
        }
    }

    /// Returns a `Cookie` field and the values of its cookies (RFC 6265 §4.2.1). A short one is often a setting.
    private static func cookies(in value: String) -> [Redactor.Secret] {
        let values = value.split(separator: ";").compactMap { pair in
            pair.firstIndex(of: "=").map { String(pair[pair.index(after: $0)...]) }
        }
        return ([value] + values).map { Redactor.Secret(value: $0, isCertain: false) }
    }
}

// MARK: - URLs

extension AddedSecrets {
    /// Returns what a URL contains in its user information, its path and its query, and the original ones do not.
    private static func secrets(
        in url: String,
        besides originals: [String],
        _ isCredential: Bool
    ) -> [Redactor.Secret] {
        guard !originals.contains(url) else { return [] }
        let known = Set(originals.flatMap(queryItems))
        let items = queryItems(of: url).filter { !known.contains($0) }
        let segments = Set(originals.flatMap(pathSegments))
        let added = pathSegments(of: url).filter { !segments.contains($0) }
        return items.flatMap { secrets(inQueryItem: $0, isCredential) }
            + added.flatMap { spellings($0, false) } + userInformation(of: url)
    }

    private static func secrets(inQueryItem item: Substring, _ isCredential: Bool) -> [Redactor.Secret] {
        guard let equals = item.firstIndex(of: "=") else { return [] }
        let isListed = SecretQueryItems.redacted.contains(item[..<equals].lowercased())
        return spellings(item[item.index(after: equals)...], isCredential || isListed)
    }

    private static func userInformation(of url: String) -> [Redactor.Secret] {
        guard let parts = URLComponents(string: url), let password = parts.password else { return [] }
        return ["\(parts.user ?? ""):\(password)", password].map {
            Redactor.Secret(value: $0, isCertain: true)
        }
    }

    /// Returns a part of a URL as it is, and without its percent-encoding.
    private static func spellings(_ part: Substring, _ isCertain: Bool) -> [Redactor.Secret] {
        [String(part), part.removingPercentEncoding].compactMap(\.self).map {
            Redactor.Secret(value: $0, isCertain: isCertain)
        }
    }

    private static func queryItems(of url: String) -> [Substring] {
        let base = url.prefix { $0 != "#" }
        guard let mark = base.firstIndex(of: "?") else { return [] }
        return base[base.index(after: mark)...].split(separator: "&")
    }

    /// Returns the parts of the path. The scheme and the host are not among them.
    private static func pathSegments(of url: String) -> [Substring] {
        let base = url.prefix { $0 != "#" && $0 != "?" }
        return Array(base.split(separator: "/").dropFirst(2))
    }
}
