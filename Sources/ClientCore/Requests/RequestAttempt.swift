internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The state that all hops of one attempt share; see ``Hop``.
struct RequestAttempt {
    let began = ContinuousClock.now
    /// The body that replaces the request's own in this attempt.
    var upload: UploadBody?
    /// The number of redirects that were followed.
    var redirects = 0
    var hasAnsweredChallenge = false
    /// The credentials that answered the attempt's challenge, for later hops to the same origin.
    var challengeCredentials: TransferCredentials?
    /// Whether the last hop sent credentials.
    var isAuthenticated = false
    /// The transfers that have ended.
    var transactions: [Transaction] = []
}

/// A finished transfer of an attempt.
struct Transaction: Sendable {
    let metrics: TransferMetrics
    /// The request as it was sent.
    let request: URLRequest
    let head: ResponseHead?
}
