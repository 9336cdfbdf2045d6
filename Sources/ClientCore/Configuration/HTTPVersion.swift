/// The versions of HTTP that a request over TLS can ask for; see ``RequestOptions/httpVersion``.
public enum HTTPVersion: String, Sendable, Hashable, CaseIterable {
    /// HTTP/1.1, even if the server offers HTTP/2.
    case http1 = "1.1"
    /// HTTP/2 if the server offers it, otherwise HTTP/1.1. This is how requests are sent by default. If HTTP/2 has
    /// failed at the server within the last day, HTTP/1.1 is used; see <doc:Connecting>.
    case http2 = "2"
}
