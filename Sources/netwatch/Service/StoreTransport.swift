internal import Foundation
internal import NetwatchService

/// The queue's directory, opened by this process: the service's own routes answer, and nothing is sent.
struct StoreTransport: ControlTransport {
    let directory: String
    let queue: StoredQueue

    var name: String { "the queue in `\(directory)`" }

    func answer(to exchange: ControlExchange) async -> ControlAnswer {
        let answer = await queue.respond(
            exchange.method,
            exchange.target,
            body: exchange.body.map(Array.init) ?? []
        )
        return ControlAnswer(status: answer.status, body: Data(answer.body))
    }
}
