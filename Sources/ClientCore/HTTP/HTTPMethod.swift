/// A request method of RFC 9110 §9 or RFC 5789 (`PATCH`).
public enum HTTPMethod: String, Hashable, Sendable {
    /// `OPTIONS`.
    case options = "OPTIONS"
    /// `GET`.
    case get = "GET"
    /// `HEAD`. A request with this method has no body.
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
    /// `CONNECT`. A request with this method fails before it is sent, because the method only opens tunnels through
    /// proxies.
    case connect = "CONNECT"
}

extension HTTPMethod {
    /// Returns the method that a name in the wrong case stands for, for example `GET` for `get`.
    ///
    /// Methods are case-sensitive (RFC 9110 §9.1), so a server would not recognize `get`.
    ///
    /// - Returns: `nil` for a name in the correct case, and for an unknown name.
    package static func misspelt(as text: String) -> HTTPMethod? {
        HTTPMethod(rawValue: text.uppercased()).flatMap { $0.rawValue == text ? nil : $0 }
    }

    /// Returns whether sending a request with this method twice has the same effect as sending it once (RFC 9110
    /// §9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }
}
