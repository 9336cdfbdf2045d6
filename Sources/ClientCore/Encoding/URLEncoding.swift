internal import Foundation
public import FoundationNetworking

/// Parameters as `name=value&name=value`, in the URL or in the body.
///
/// The same parameters give the same text on every run: names are sorted, at every level. Whatever is not
/// a letter, a digit or one of `-._~/?` is percent-encoded as UTF-8, a space as `%20`.
///
/// | value | text |
/// |---|---|
/// | `true` | `1`, or `true` with ``BoolEncoding/literal``. The number 1 is always `1` |
/// | `1.0`, `0.1`, `Decimal` | `1`, `0.1`, every digit. A whole number never ends in `.0` |
/// | array | see ``ArrayEncoding``. A set is an array of its elements, sorted by their text |
/// | dictionary | `name[key]=value`. Keys that are no texts are described |
/// | `nil`, `NSNull` | empty: `name=` |
/// | empty array or dictionary | nothing at all |
/// | anything else | its description |
public struct URLEncoding: ParameterEncoding {
    /// Where the parameters go.
    public enum Destination: Sendable {
        /// Into the URL of `GET`, `HEAD` and `DELETE`, and into the body of any other request.
        case methodDependent
        /// Into the URL, after the query that is there.
        case queryString
        /// Into the body.
        case httpBody
    }

    /// What the elements of an array are called.
    public enum ArrayEncoding: Sendable {
        /// `name[]=1&name[]=2`.
        case brackets
        /// `name=1&name=2`.
        case noBrackets
        /// `name[0]=1&name[1]=2`.
        case indexInBrackets
    }

    /// How a `Bool` is written.
    public enum BoolEncoding: Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// Where the method decides, with brackets and numeric Booleans.
    public static let `default` = URLEncoding()
    /// The same as ``default``.
    public static let methodDependent = URLEncoding()
    /// Always in the URL.
    public static let queryString = URLEncoding(destination: .queryString)
    /// Always in the body.
    public static let httpBody = URLEncoding(destination: .httpBody)

    /// Where the parameters go.
    public let destination: Destination
    /// What the elements of an array are called.
    public let arrayEncoding: ArrayEncoding
    /// How a `Bool` is written.
    public let boolEncoding: BoolEncoding

    /// - Parameters:
    ///   - destination: Where the parameters go. Default: the method decides.
    ///   - arrayEncoding: What the elements of an array are called. Default: `name[]`.
    ///   - boolEncoding: How a `Bool` is written. Default: `1` and `0`.
    public init(
        destination: Destination = .methodDependent,
        arrayEncoding: ArrayEncoding = .brackets,
        boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    /// Puts the parameters into the URL or the body, which is replaced.
    ///
    /// A body gets `Content-Type: application/x-www-form-urlencoded; charset=utf-8`, unless the request has
    /// one. The fragment of a URL stays at its end.
    ///
    /// - Parameters:
    ///   - urlRequest: What to make the request of.
    ///   - parameters: The parameters; `nil` leaves the request as it is.
    /// - Throws: What `urlRequest` throws;
    ///   ``AFError/ParameterEncodingFailureReason/missingURL`` when there is no URL to put them into;
    ///   ``AFError/ParameterEncodingFailureReason/customEncodingFailed(error:)`` with
    ///   ``ParametersTooDeep`` underneath.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        var urlRequest = try urlRequest.asURLRequest()
        guard let parameters else { return urlRequest }
        guard encodesInURL(urlRequest.httpMethod ?? "GET") else {
            let contentType = "application/x-www-form-urlencoded; charset=utf-8"
            urlRequest.setBody(Data(try query(parameters).utf8), contentType: contentType)
            return urlRequest
        }
        guard let url = urlRequest.url else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
        urlRequest.url = try url.appending(query: query(parameters))
        return urlRequest
    }

    private func encodesInURL(_ method: String) -> Bool {
        switch destination {
        case .methodDependent: ["GET", "HEAD", "DELETE"].contains(method)
        case .queryString: true
        case .httpBody: false
        }
    }
}

extension URL {
    /// Works on the text: the setter of `URLComponents.percentEncodedQuery` ends the program when it does
    /// not like what it gets, and URLs that are relative to another would lose their base.
    fileprivate func appending(query: String) throws -> URL {
        guard !query.isEmpty else { return self }
        let parts = absoluteString.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let fragment = parts.count > 1 ? "#\(parts[1])" : ""
        let text = "\(parts[0])\(Self.separator(after: parts[0]))\(query)\(fragment)"
        guard let url = URL(string: text) else { throw AFError.invalidURL(url: text) }
        return url
    }

    private static func separator(after text: Substring) -> String {
        guard text.contains("?") else { return "?" }
        return text.hasSuffix("?") || text.hasSuffix("&") ? "" : "&"
    }
}
