/// A request of this queue whose response a caller of this process waits for. Its attempts keep more of the response
/// than the store does.
struct AwaitedResponse {
    /// How the request ended, if an attempt of this process ended it.
    struct Conclusion: Sendable {
        let verdict: Verdict
        let response: RecordedResponse?
    }

    /// The maximum number of body bytes that the caller accepts.
    let limit: Int
    var conclusion: Conclusion?
}

extension OfflineQueue {
    /// Whether the queue still writes, so that stored requests can finish in this process.
    var isOpen: Bool { phase != .stopped && !hasFailed }

    /// Keeps the response to a request for ``takeResponse(to:)``. Must be called before the request is enqueued.
    func expectResponse(to id: String, upTo limit: Int) {
        awaitedResponses[id] = AwaitedResponse(limit: limit)
    }

    /// Returns how the request ended, if an attempt of this process ended it, and forgets the request.
    func takeResponse(to id: String) -> AwaitedResponse.Conclusion? {
        awaitedResponses.removeValue(forKey: id)?.conclusion
    }

    /// Drops a kept response whose outcome could not be stored.
    func dropResponse(to id: String) {
        awaitedResponses[id]?.conclusion = nil
    }

    func keepResponse(to id: String, _ verdict: Verdict, _ outcome: AttemptOutcome?) {
        guard let limit = awaitedResponses[id]?.limit else { return }
        switch verdict {
        case .delivered, .dead:
            awaitedResponses[id]?.conclusion = AwaitedResponse.Conclusion(
                verdict: verdict,
                response: outcome?.response(upTo: limit)
            )
        case .retry, .held: break
        }
    }
}
