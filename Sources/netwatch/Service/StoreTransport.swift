internal import Foundation
internal import NetwatchService

/// Opens the queue's directory in this process. The service's own routes handle the requests, and nothing is sent.
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
