internal import Foundation
internal import FoundationNetworking

/// Where a response sends a request, and what it becomes on the way.
///
/// Methods change as browsers change them (Fetch, "HTTP-redirect fetch"): 301 and 302 make a POST a GET and
/// leave other methods alone, which RFC 9110 §15.4 allows; 303 makes everything but HEAD a GET; 307 and 308
/// change nothing. What may not be followed unasked, 300, 304, 305 and 306, is an answer like any other.
struct Redirection: Sendable {
    /// How many a request follows, one after another; as many as with URLSession.
    static let limit = 16

    /// The next request. Cookies are not in it: ask the jar again.
    let request: URLRequest
    /// Whether it goes to another origin: another scheme, host or port. From https to http is one of them.
    /// Nothing that proves who is asking may go there; the request's own fields for it are gone already.
    let crossesOrigin: Bool
    /// Whether the body is to be sent once more, which a body that cannot be rewound cannot.
    let keepsBody: Bool

    /// - Parameters:
    ///   - request: The request that was answered, without fields that the session adds for itself.
    ///   - status: The status of the answer.
    ///   - location: Its `Location` field. Without one, or with an empty one, there is nowhere to go; libcurl
    ///     and browsers see it like that too, although RFC 3986 reads the empty text as the same URL.
    /// - Returns: `nil` when the answer is the end of it.
    /// - Throws: `URLError.badServerResponse` for a location that is no URL or names no host, and
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
        if crossesOrigin { next.remove(Self.originFields) }
        self.request = next
    }

    private static func method(after method: String, _ status: Int) -> String {
        switch status {
        case 301, 302: method == "POST" ? "GET" : method
        case 303: method == "HEAD" ? "HEAD" : "GET"
        default: method
        }
    }

    /// What is meant for one origin: what proves who is asking, and the name that the server is called by.
    private static let originFields = ["Authorization", "Proxy-Authorization", "Cookie", "Host"]
}

extension URLRequest {
    /// What says something about a body (RFC 9110 §15.4).
    private static let bodyFields = [
        "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location",
        "Transfer-Encoding", "Digest", "Last-Modified", "Expect",
    ]

    fileprivate mutating func becomeBodiless(_ method: String) {
        httpMethod = method
        // Data and stream share one place in Foundation; this empties it.
        httpBody = nil
        remove(Self.bodyFields)
    }

    fileprivate mutating func remove(_ fields: [String]) {
        for field in fields { setValue(nil, forHTTPHeaderField: field) }
    }
}

extension URL {
    /// Whether scheme, host and port are the same (RFC 6454 §4).
    func hasSameOrigin(as other: URL) -> Bool {
        scheme?.lowercased() == other.scheme?.lowercased()
            && host?.lowercased() == other.host?.lowercased()
            && effectivePort == other.effectivePort
    }

    private var effectivePort: Int? {
        port ?? (scheme?.lowercased() == "https" ? 443 : 80)
    }
}
