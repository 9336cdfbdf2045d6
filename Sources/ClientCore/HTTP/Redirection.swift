internal import Foundation
internal import FoundationNetworking

/// A redirect, and the request that follows it.
///
/// Methods change as in browsers (Fetch, "HTTP-redirect fetch"). 301 and 302 turn a POST into a GET and keep
/// other methods, which RFC 9110 §15.4 allows. 303 turns every method but HEAD into a GET. 307 and 308 keep the
/// method. 300, 304, 305 and 306 must not be followed automatically, so they count as normal responses.
struct Redirection: Sendable {
    /// The maximum number of redirects in a row, the same as URLSession's.
    static let limit = 16

    /// The next request, without cookies: they must be looked up again.
    let request: URLRequest
    /// Whether the next request goes to another origin: another scheme, host or port. https to http also
    /// counts. Credentials must not be sent there. The request's own credential fields are already removed.
    let crossesOrigin: Bool
    /// Whether the body is sent again. That fails for a body that cannot be rewound.
    let keepsBody: Bool

    /// - Parameters:
    ///   - request: The request that was answered, without the fields that the session adds.
    ///   - status: The status of the response.
    ///   - location: The response's `Location` field. A missing or empty field is not a redirect. RFC 3986
    ///     reads empty text as the same URL, but libcurl and browsers ignore it.
    /// - Returns: `nil` if the response is not a redirect to follow.
    /// - Throws: `URLError.badServerResponse` for a location that is not a URL or names no host, and
    ///   `URLError.unsupportedURL` for one that is neither http nor https.
    init?(of request: URLRequest, status: Int, location: String?) throws(URLError) {
        guard [301, 302, 303, 307, 308].contains(status) else { return nil }
        guard let base = request.url, let location, !location.isEmpty else { return nil }
        let target = try RedirectTarget(location, from: base).url
        crossesOrigin = !target.hasSameOrigin(as: base)
        let oldMethod = request.httpMethod ?? "GET"
        let method = Self.method(after: oldMethod, status)
        keepsBody = method == oldMethod
        var next = request
        next.url = target
        if !keepsBody { next.becomeBodiless(method) }
        if crossesOrigin { next.remove(SecretHeaderFields.originBound) }
        self.request = next
    }

    private static func method(after method: String, _ status: Int) -> String {
        switch status {
        case 301, 302: method == "POST" ? "GET" : method
        case 303: method == "HEAD" ? "HEAD" : "GET"
        default: method
        }
    }
}

extension URLRequest {
    /// The fields that describe a body (RFC 9110 §15.4).
    private static let bodyFields: Set<String> = [
        "content-type", "content-length", "content-encoding", "content-language", "content-location",
        "transfer-encoding", "digest", "last-modified", "expect",
    ]

    fileprivate mutating func becomeBodiless(_ method: String) {
        httpMethod = method
        // Foundation stores the body's data and stream in one place, so this also removes a stream.
        httpBody = nil
        remove(Self.bodyFields)
    }

    /// - Parameter names: Lower-case names.
    fileprivate mutating func remove(_ names: Set<String>) {
        for name in (allHTTPHeaderFields ?? [:]).keys where names.contains(name.lowercased()) {
            setValue(nil, forHTTPHeaderField: name)
        }
    }
}
