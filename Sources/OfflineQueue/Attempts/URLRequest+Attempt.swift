internal import Foundation
internal import FoundationNetworking

extension URLRequest {
    /// Creates the request of an attempt, without a body from the spool. Returns `nil` if `URL` does not accept the
    /// URL.
    init?(_ attempt: Attempt) {
        guard let url = URL(string: attempt.url) else { return nil }
        self.init(url: url)
        httpMethod = attempt.method
        if case .data(let data) = attempt.body { httpBody = data }
        for header in attempt.headers { addValue(header.value, forHTTPHeaderField: header.name) }
    }
}
