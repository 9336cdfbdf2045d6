internal import Foundation
internal import FoundationNetworking

extension URLRequest {
    /// Creates the request of an attempt, without a body from the spool. Returns `nil` if `URL` does not accept the
    /// URL.
    ///
    /// The client converts it to libcurl's options again. Adapters, event monitors and `cURLDescription` of the queue's
    /// session need a `URLRequest`, as in Alamofire.
    init?(_ attempt: Attempt) {
        var body: Data?
        if case .data(let data) = attempt.body { body = data }
        guard
            let request = try? URLRequest(
                method: attempt.method,
                url: attempt.url,
                headers: attempt.headers,
                body: body
            )
        else { return nil }
        self = request
    }
}
