internal import Foundation
internal import FoundationNetworking
package import NetwatchTransport

/// Header fields: values by name. Names that differ only in case mean the same field.
public typealias HTTPHeaders = [String: String]

/// Returns the fields by lower-case name.
///
/// If two names differ only in case, the name that sorts last wins. Without this rule, the result would depend on the
/// order of the dictionary, which differs from run to run.
private func fields(_ headers: HTTPHeaders) -> [String: (name: String, value: String)] {
    var fields: [String: (name: String, value: String)] = [:]
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
        fields[name.lowercased()] = (name, value)
    }
    return fields
}

extension TransferRequest.Header {
    /// The name of the field by which a server recognizes a request that arrives twice
    /// (draft-ietf-httpapi-idempotency-key-header).
    package static let idempotencyKey = "Idempotency-Key"
}

extension HTTPHeaders {
    /// The fields in the engine's form, sorted by name.
    var sortedFields: [TransferRequest.Header] {
        sorted { $0.key < $1.key }.map { TransferRequest.Header($0.key, $0.value) }
    }

    /// Returns these fields, and those fields of `defaults` that are missing here. The case of names is ignored.
    func merged(over defaults: HTTPHeaders) -> HTTPHeaders {
        let merged = fields(defaults).merging(fields(self)) { _, mine in mine }
        return HTTPHeaders(uniqueKeysWithValues: merged.values.map { ($0.name, $0.value) })
    }
}

extension URLRequest {
    /// Sets fields, replacing those with the same names.
    ///
    /// `setValue(_:forHTTPHeaderField:)` is not used, for two reasons:
    ///
    /// - It silently drops a value with a line break or NUL, which ``validateForSending(body:fields:)`` must
    ///   refuse.
    /// - It changes the name `ETag` to `Etag`.
    mutating func setHeaders(_ headers: HTTPHeaders) {
        allHTTPHeaderFields = headers.merged(over: allHTTPHeaderFields ?? [:])
    }

    /// Returns the request with those fields that it does not have yet.
    func adding(_ fields: HTTPHeaders) -> URLRequest {
        guard !fields.isEmpty else { return self }
        var request = self
        request.setHeaders((allHTTPHeaderFields ?? [:]).merged(over: fields))
        return request
    }

    /// Returns the request as the program sees it if it was sent with these fields instead of its own.
    func reported(with fields: [TransferRequest.Header]) -> URLRequest {
        var request = self
        for field in fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}

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
