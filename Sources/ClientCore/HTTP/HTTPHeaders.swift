internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// Header fields by name. Names that differ only in case are the same field on the wire.
public typealias HTTPHeaders = [String: String]

/// Returns the fields by lower-case name.
///
/// Of two names that differ only in case, the last in sorted order wins, so the result is the same on every
/// run.
private func fields(_ headers: HTTPHeaders) -> [String: (name: String, value: String)] {
    var fields: [String: (name: String, value: String)] = [:]
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
        fields[name.lowercased()] = (name, value)
    }
    return fields
}

extension HTTPHeaders {
    /// The fields for a transfer, sorted by name.
    var sortedFields: [TransferRequest.Header] {
        sorted { $0.key < $1.key }.map { TransferRequest.Header($0.key, $0.value) }
    }

    /// Returns these fields plus those of `defaults` that are missing. Names are compared without case.
    func merged(over defaults: HTTPHeaders) -> HTTPHeaders {
        let merged = fields(defaults).merging(fields(self)) { _, mine in mine }
        return HTTPHeaders(uniqueKeysWithValues: merged.values.map { ($0.name, $0.value) })
    }
}

extension URLRequest {
    /// Sets fields, replacing those with the same names.
    ///
    /// Sets all fields at once, because `setValue(_:forHTTPHeaderField:)` silently drops a value with a line
    /// break or NUL, which ``validateForSending(allowedSchemes:body:)`` must refuse. It also writes `Etag` for
    /// `ETag`.
    mutating func setHeaders(_ headers: HTTPHeaders) {
        allHTTPHeaderFields = headers.merged(over: allHTTPHeaderFields ?? [:])
    }
}
