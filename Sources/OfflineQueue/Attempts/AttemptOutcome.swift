package import Foundation

/// The result of one transfer.
package enum AttemptOutcome: Sendable {
    /// A final response. `isTruncated`: a limit or the end of the connection cut its body.
    case response(status: Int, headers: [(String, String)], body: Data, isTruncated: Bool)
    /// No complete response was received.
    case failure(AttemptFailure)
    /// The body can no longer be sent: it is missing, or differs from the accepted body.
    case unsendable(reason: String)
}
