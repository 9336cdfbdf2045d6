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
}

/// Who answers the control API: the service, or this process itself.
protocol ControlTransport: Sendable {
    /// Who answers, for messages.
    var name: String { get }

    /// - Throws: What kept the answer away. A refusal is an answer.
    func answer(to exchange: ControlExchange) async throws(CommandError) -> (status: Int, body: Data)
}
