internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

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
