internal import Foundation
package import FoundationNetworking
internal import Synchronization

/// A request that has failed, in the hands of somebody who may finish it.
///
/// It ends once: by the first call of ``finish(with:)`` or ``fail(with:)``; when the last reference to it goes, which
/// offers the request to the next who may finish it, or lets the error that it failed of stand; or without its
/// owner, by being cancelled or by the end of its session, of which ``whenWithdrawn(_:)`` tells. Suspending and
/// resuming it change nothing. All functions may be called from any thread.
package final class FailedRequest: Sendable {
    /// Why a request is over without its owner.
    package enum Withdrawal: Sendable {
        case cancelled
        case sessionDropped
    }

    /// What becomes of it.
    enum Answer: Sendable {
        case response(OwnerResponse)
        case failure(any Error)
        case declined
    }

    private struct State {
        var answer: (@Sendable (Answer) -> Void)?
        var withdrawal: Withdrawal?
        var tell: (@Sendable (Withdrawal) -> Void)?
    }

    /// The request as its program made it, which an adapter may be asked to adapt anew.
    package let original: URLRequest
    /// The request as it was sent last; `nil` when its adapter has refused it.
    package let adapted: URLRequest?
    /// What was sent in place of the request's own body; `nil` for a request that has only its own. A file that
    /// is temporary goes with the request's end.
    package let upload: UploadBody?
    /// Why it failed: what its handlers get if nobody takes it.
    package let error: any Error
    /// The head of the response that was refused, if one came.
    package let response: HTTPURLResponse?
    /// How often it was tried again.
    package let retryCount: Int

    private let state: Mutex<State>

    /// - Parameters:
    ///   - outcome: What the request came to.
    ///   - answer: Called once at most, on any thread.
    init(
        _ original: URLRequest,
        _ outcome: RequestOutcome,
        upload: UploadBody?,
        error: any Error,
        retryCount: Int,
        answer: @escaping @Sendable (Answer) -> Void
    ) {
        self.original = original
        adapted = outcome.request
        self.upload = upload
        self.error = error
        response = outcome.response
        self.retryCount = retryCount
        state = Mutex(State(answer: answer))
    }

    deinit { end(.declined) }

    // MARK: For its owner

    /// Ends the request with a response.
    ///
    /// It is taken as it is: the request's validators do not judge it, nobody is asked whether to try again, and
    /// credentials that come late do not send it once more. Its body goes where the request's bodies go, so a
    /// download is in its file.
    package func finish(with response: OwnerResponse) { end(.response(response)) }

    /// Ends the request with an error. What its own last attempt has brought, a refused response for example,
    /// stays beside it.
    package func fail(with error: any Error) { end(.failure(error)) }

    /// Takes what is called when the request is over without its owner: once at most, on the request's own queue,
    /// before the request's handlers; at once when it is already. Not after ``finish(with:)`` or
    /// ``fail(with:)`` has counted.
    ///
    /// - Parameter tell: Is kept by this object, so it must not keep this object.
    package func whenWithdrawn(_ tell: @escaping @Sendable (Withdrawal) -> Void) {
        let withdrawal = state.withLock { state in
            if state.withdrawal == nil { state.tell = tell }
            return state.withdrawal
        }
        if let withdrawal { tell(withdrawal) }
    }

    private func end(_ answer: Answer) {
        let taken = state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
        guard let taken, !RequestFault.dropsAnswer.strikes else { return }
        taken(answer)
    }

    // MARK: For its request

    /// The request is over: an answer that is on its way comes too late.
    func withdraw(_ withdrawal: Withdrawal) {
        let taken = state.withLock { state in
            defer { (state.answer, state.tell, state.withdrawal) = (nil, nil, withdrawal) }
            return (answer: state.answer, tell: state.tell)
        }
        taken.tell?(withdrawal)
    }

    /// The answer counts: what the owner has left with us goes.
    func settle() {
        let tell = state.withLock { state in
            defer { state.tell = nil }
            return state.tell
        }
        withExtendedLifetime(tell) {}
    }
}
