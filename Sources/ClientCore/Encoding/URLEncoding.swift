internal import Foundation
public import FoundationNetworking

/// Encodes parameters as `name=value&name=value`, in the URL or in the body.
///
/// The same parameters always produce the same text, because names are sorted at every level. All characters except
/// ASCII letters, ASCII digits and `-._~/?` are percent-encoded as UTF-8. A space becomes `%20`.
///
/// | value | text |
/// |---|---|
/// | `true` | `1`, or `true` with ``BoolEncoding/literal`` |
/// | the numbers `1`, `1.0`, `0.1` | `1`, `1`, `0.1` |
/// | `Decimal` | all its digits |
/// | array | one pair per element; ``ArrayEncoding`` selects the names |
/// | set | like an array, sorted by the description of the elements |
/// | dictionary | `name[key]=value`. A key that is not a string is converted to its description |
/// | `nil`, `NSNull` | empty: `name=` |
/// | empty array, set or dictionary | no pair at all |
/// | other values | the description of the value |
public struct URLEncoding: ParameterEncoding {
    /// The part of the request that receives the parameters.
    public enum Destination: Sendable {
        /// The URL for `GET`, `HEAD` and `DELETE`, the body for other methods.
        case methodDependent
        /// The URL. The parameters are appended to its query.
        case queryString
        /// The body.
        case httpBody
    }

    /// The names of the elements of an array.
    public enum ArrayEncoding: Sendable {
        /// `name[]=1&name[]=2`.
        case brackets
        /// `name=1&name=2`.
        case noBrackets
        /// `name[0]=1&name[1]=2`.
        case indexInBrackets
    }

    /// The text for a `Bool`.
    public enum BoolEncoding: Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// Encodes in the URL or the body, depending on the method. Arrays have brackets, and Booleans are `1` and `0`.
    public static let `default` = URLEncoding()
    /// The same as ``default``.
    public static let methodDependent = URLEncoding()
    /// Encodes in the URL, for every method.
    public static let queryString = URLEncoding(destination: .queryString)
    /// Encodes in the body, for every method.
    public static let httpBody = URLEncoding(destination: .httpBody)

    /// The part of the request that receives the parameters.
    public let destination: Destination
    /// The names of the elements of an array.
    public let arrayEncoding: ArrayEncoding
    /// The text for a `Bool`.
    public let boolEncoding: BoolEncoding

    /// Creates an encoding.
    ///
    /// - Parameters:
    ///   - destination: The part of the request that receives the parameters. Default: the method decides.
    ///   - arrayEncoding: The names of the elements of an array. Default: `name[]`.
    ///   - boolEncoding: The text for a `Bool`. Default: `1` and `0`.
    public init(
        destination: Destination = .methodDependent,
        arrayEncoding: ArrayEncoding = .brackets,
        boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    /// Appends the parameters to the URL's query, or replaces the body with them.
    ///
    /// If the parameters are in the body, this also sets
    /// `Content-Type: application/x-www-form-urlencoded; charset=utf-8`, unless the request has a `Content-Type`. The
    /// fragment of the URL is kept.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Throws: The error of `urlRequest`;
    ///   ``AFError/ParameterEncodingFailureReason/missingURL`` if the parameters belong in the URL, but the request has
    ///   none; or ``AFError/ParameterEncodingFailureReason/customEncodingFailed(error:)`` with the underlying error
    ///   ``ParametersTooDeep``.
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
    /// Returns the URL with text appended to its query.
    ///
    /// `URLComponents` is not used, because the setter of `percentEncodedQuery` terminates the program for invalid
    /// text, and because a relative URL would lose its base.
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
