/// The methods of RFC 9110 §9 and RFC 5789.
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
    /// `CONNECT`. Opens a tunnel through a proxy, so a request with this method fails before it is sent.
    case connect = "CONNECT"
}

extension HTTPMethod {
    /// Returns the method that a wrongly cased name stands for, for example GET for `get`. Methods are
    /// case-sensitive (RFC 9110 §9.1), so a server would not recognize the name. Returns `nil` for a correct or
    /// an unknown method.
    package static func misspelt(as text: String) -> HTTPMethod? {
        HTTPMethod(rawValue: text.uppercased()).flatMap { $0.rawValue == text ? nil : $0 }
    }

    /// Whether sending a request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }
}
