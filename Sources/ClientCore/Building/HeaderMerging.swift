internal import Foundation
internal import FoundationNetworking

/// Fields under the name that every spelling of it has.
///
/// Of two names in one dictionary that differ only in case, the later one in sorted order wins, so that it
/// is the same one on every run.
private func fields(_ headers: HTTPHeaders) -> [String: (name: String, value: String)] {
    var fields: [String: (name: String, value: String)] = [:]
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
        fields[name.lowercased()] = (name, value)
    }
    return fields
}

extension HTTPHeaders {
    /// These fields, and those of `defaults` that are not among them, however their names are written.
    func merged(over defaults: HTTPHeaders) -> HTTPHeaders {
        let merged = fields(defaults).merging(fields(self)) { _, mine in mine }
        return HTTPHeaders(uniqueKeysWithValues: merged.values.map { ($0.name, $0.value) })
    }
}

extension URLRequest {
    /// Sets fields in place of those of the same names.
    ///
    /// As a whole, because `setValue(_:forHTTPHeaderField:)` silently leaves out a value with a line break
    /// or NUL, which ``validateForSending(allowedSchemes:body:)`` is to refuse, and writes `Etag` for `ETag`.
    mutating func setHeaders(_ headers: HTTPHeaders) {
        allHTTPHeaderFields = headers.merged(over: allHTTPHeaderFields ?? [:])
    }
}
