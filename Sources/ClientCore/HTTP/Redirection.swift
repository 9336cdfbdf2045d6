internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A redirect, and the request that follows it.
///
/// The method of the next request is the one that browsers choose (Fetch, "HTTP-redirect fetch"; RFC 9110 §15.4
/// allows it):
///
/// | status | next method |
/// |---|---|
/// | 301, 302 | GET after POST; otherwise the same method |
/// | 303 | HEAD after HEAD; otherwise GET |
/// | 307, 308 | the same method |
///
/// Other statuses are not redirects: 300, 304, 305 and 306 must not be followed automatically.
struct Redirection: Sendable {
    /// The maximum number of redirects that an attempt follows, the same as URLSession's.
    static let limit = 16

    /// The next request. It contains no cookies from the cookie jar, because those depend on the URL.
    let request: URLRequest
    /// The text of the next URL as it is sent, if it differs from the URL; see ``RedirectTarget/sentText``.
    let sentText: String?
    /// Whether the next request goes to another origin, that is, to another scheme, host or port. Credentials must not
    /// be sent there. ``request`` no longer contains the fields of ``SecretHeaderFields/originBound``. It keeps all
    /// other fields, like URLSession.
    let crossesOrigin: Bool
    /// Whether the next request sends the body again. Sending fails if the body cannot be read a second time.
    let keepsBody: Bool

    /// - Parameters:
    ///   - request: The request that the response belongs to, without the fields that the session adds.
    ///   - sentText: The text of its URL as it was sent, if it differs from the URL.
    ///   - status: The status of the response.
    ///   - location: The response's `Location` field. If it is missing or empty, the response is not a redirect. By RFC
    ///     3986 an empty reference means the same URL, but libcurl and browsers ignore it.
    /// - Returns: `nil` if the response is not a redirect that is followed.
    /// - Throws: `URLError.badServerResponse` for a location that is not a URL or names no host, and
    ///   `URLError.unsupportedURL` for one that is neither http nor https.
    init?(
        of request: URLRequest,
        sentAs sentText: String? = nil,
        status: Int,
        location: String?
    ) throws(URLError) {
        guard Self.isFollowed(status) else { return nil }
        guard let base = request.url, let location, !location.isEmpty else { return nil }
        let target = try RedirectTarget(location, from: base, sentAs: sentText)
        self.sentText = target.sentText
        crossesOrigin = !target.url.hasSameOrigin(as: base)
        let oldMethod = request.httpMethod ?? "GET"
        let method = Self.method(after: oldMethod, status)
        keepsBody = method == oldMethod
        var next = request
        next.url = target.url
        if !keepsBody { next.becomeBodiless(method) }
        if crossesOrigin { next.remove(SecretHeaderFields.originBound) }
        self.request = next
    }

    /// Returns whether a response with this status is a redirect that is followed.
    static func isFollowed(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

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

    /// Removes header fields.
    ///
    /// - Parameter names: The names in lower case.
    fileprivate mutating func remove(_ names: Set<String>) {
        for name in (allHTTPHeaderFields ?? [:]).keys where names.contains(name.lowercased()) {
            setValue(nil, forHTTPHeaderField: name)
        }
    }
}
