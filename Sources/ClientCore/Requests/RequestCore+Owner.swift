internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Offering a failed request to its owners.

extension RequestCore {
    func setOwner(_ owner: any FailedRequestOwner) {
        guard !state.isSettled else { return }
        owners.setOwn(owner)
        amend(with: .owner)
    }

    /// Offers the failure to the next owner that has not been asked. When all have declined, the error stands.
    func offer(_ attempt: Int, after error: any Error) {
        guard plan.policy.asksRetrier, !error.isCancellation, let original = plan.original.value,
            let owner = owners.next(context.hooks.failedRequestOwner)
        else { return handle(.declined(attempt: attempt)) }
        let failed = FailedRequest(
            original,
            outcome,
            upload: plan.upload,
            error: error,
            retryCount: attempt - 1
        ) { answer in
            self.perform { $0.answered(attempt, answer, after: error) }
        }
        offered = failed
        owner.offer(failed)
    }

    private func answered(_ attempt: Int, _ answer: FailedRequest.Answer, after error: any Error) {
        // If the request has finished meanwhile, its sink can no longer take a response.
        guard !state.isFinished else { return }
        offered?.settle()
        switch answer {
        case .response(let response): handle(.answered(attempt: attempt, failure: take(response)))
        case .failure(let error): handle(.answered(attempt: attempt, failure: error))
        case .declined: offer(attempt, after: error)
        }
    }

    /// Delivers the owner's response as if it came from a transfer.
    ///
    /// - Returns: The error that prevented it, for example a full disk.
    private func take(_ response: OwnerResponse) -> (any Error)? {
        do {
            try write(response)
            return nil
        } catch {
            try? sink.end(error)
            return error
        }
    }

    private func write(_ response: OwnerResponse) throws {
        guard var request = outcome.request ?? plan.original.value else { return }
        let head = ResponseHead(response.head, from: response.url)
        try sink.prepare(&request)
        // A sink returns another verdict only if it requested part of the body, but the owner requested all of
        // it.
        guard case .accept = try sink.begin(head) else { throw URLError(.badServerResponse) }
        outcome.head = head
        outcome.clock.responseBegan()
        if let metrics = response.metrics { outcome.metrics = LazyValue(value: metrics) }
        let metrics = outcome.metrics
        snapshot.change { values in
            values.head = head
            values.metrics = metrics
        }
        try sink.write(Array(response.body))
        downloadProgress.restart()
        downloadProgress.update(Int64(response.body.count), of: Int64(response.body.count))
        try sink.end(nil)
        try sink.accept(head)
    }
}

extension FailedRequest.Withdrawal {
    init(_ interruption: RequestStateMachine<RequestCore.Handler>.Interruption) {
        self =
            switch interruption {
            case .cancelled: .cancelled
            case .sessionDropped: .sessionDropped
            }
    }
}
