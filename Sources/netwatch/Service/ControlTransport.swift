internal import Foundation

/// One request of the control API.
struct ControlExchange: Sendable {
    let method: String
    /// The path with its query.
    let target: String
    var body: Data?
    var contentType: String?
    /// How long the answer may take.
    var patience: Duration
    /// Whether the service may receive it twice: it changes nothing, or the second copy is recognised.
    var isRepeatable = false
    /// How long a busy service is asked again at most; `nil` for as long as ever.
    var busyLimit: Duration?
}

/// An answer of the control API, be it a refusal.
struct ControlAnswer: Sendable {
    let status: Int
    let body: Data
    /// When to try again, if the service says so (`Retry-After`).
    var retryAfter: Duration?
}

/// Who answers the control API: the service, or this process itself.
protocol ControlTransport: Sendable {
    /// Who answers, for messages.
    var name: String { get }

    /// - Throws: The reason why there is no answer. A refusal is an answer.
    func answer(to exchange: ControlExchange) async throws(CommandError) -> ControlAnswer
}
