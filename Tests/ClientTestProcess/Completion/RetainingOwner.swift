internal import ClientCore
internal import NetwatchEventLoop

/// An owner that retains one failed request and never answers. The request ends only if it is cancelled, or with its
/// session.
final class RetainingOwner: FailedRequestOwner {
    private struct State {
        var request: Request?
        var kept: [FailedRequest] = []
    }

    private let record: CompletionRecord
    private let withdrawn: @Sendable () -> Void
    private let state: Lock<State>

    /// - Parameter withdrawn: Called for each failed request that is withdrawn from this owner.
    init(of request: Request, _ record: CompletionRecord, withdrawn: @escaping @Sendable () -> Void) {
        self.record = record
        self.withdrawn = withdrawn
        state = Lock(State(request: request))
    }

    /// Retains the failed request, and expects one notification of its withdrawal. Declines if ``close()`` was called.
    func offer(_ request: FailedRequest) {
        let id = state.withLock { state -> Int? in
            guard state.request != nil else { return nil }
            state.kept.append(request)
            return record.expect()
        }
        guard let id else { return }
        request.whenWithdrawn { [record, withdrawn] _ in
            withdrawn()
            record.note(id, of: nil)
        }
    }

    /// Cancels the request if this owner retains it, and declines later offers.
    func close() {
        let (request, hasKept) = state.withLock { state in
            defer { state.request = nil }
            return (state.request, !state.kept.isEmpty)
        }
        if hasKept { request?.cancel() }
    }

    /// Releases the retained requests.
    func forget() {
        let kept = state.withLock { state in
            defer { state.kept = [] }
            return state.kept
        }
        withExtendedLifetime(kept) {}
    }
}
