internal import ClientCore
internal import Foundation
internal import NetwatchTransport

/// Removes secrets from a request before it is stored. The request's credential replaces them at each attempt.
package enum SecretRemoval {
    /// The end of the message about a request that contains a secret.
    static let hint =
        "the queue stores no secrets; name a credential that each attempt adds (`credential`, `--credential`)"

    /// Returns the request without secret header fields, without user name and password in its URL, and without secret
    /// query items.
    static func apply(to request: QueueRequest) -> QueueRequest {
        var request = request
        request.headers.removeAll { SecretHeaderFields.request.contains($0.name.lowercased()) }
        request.url = SecretQueryItems.removing(from: URL.removingUserInfo(from: request.url))
        return request
    }
}
