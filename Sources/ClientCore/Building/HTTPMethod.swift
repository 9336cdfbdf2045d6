/// The methods of RFC 9110 §9 and RFC 5789.
public enum HTTPMethod: String, Hashable, Sendable {
    /// `OPTIONS`.
    case options = "OPTIONS"
    /// `GET`.
    case get = "GET"
    /// `HEAD`. A request with it has no body.
    case head = "HEAD"
    /// `POST`.
    case post = "POST"
    /// `PUT`.
    case put = "PUT"
    /// `PATCH`.
    case patch = "PATCH"
    /// `DELETE`.
    case delete = "DELETE"
    /// `TRACE`.
    case trace = "TRACE"
    /// `CONNECT`. It makes a tunnel through a proxy, so a request with it fails before it is sent.
    case connect = "CONNECT"
}

/// Header fields by name. Names that differ only in case are one field on the wire.
public typealias HTTPHeaders = [String: String]

extension HTTPMethod {
    /// The method that a spelling is meant to be and is not, as GET by `get`: methods are case-sensitive (RFC 9110
    /// §9.1), so a server would see one that it does not know. `nil` for a method, and for one that nobody knows.
    package static func misspelt(as text: String) -> HTTPMethod? {
        HTTPMethod(rawValue: text.uppercased()).flatMap { $0.rawValue == text ? nil : $0 }
    }

    /// Whether sending a request twice is like sending it once (RFC 9110 §9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }
}
