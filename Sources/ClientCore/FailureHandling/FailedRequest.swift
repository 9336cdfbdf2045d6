internal import Foundation
package import FoundationNetworking
internal import Synchronization

/// A failed request that is offered to a ``FailedRequestOwner``, which can finish it.
///
/// It ends once, in one of these ways:
///
/// - The owner calls ``finish(with:)`` or ``fail(with:)``; the first call counts.
/// - The last reference to it is released. The request is then offered to the next owner, or fails with its original
///   error.
/// - The request is cancelled or its session ends; see ``whenWithdrawn(_:)``.
///
/// Suspending and resuming the request has no effect. All functions can be called from any thread.
package final class FailedRequest: Sendable {
    /// The reasons for which a request ends without its owner.
    package enum Withdrawal: Sendable {
        case cancelled
        case sessionDropped
    }

    /// The result of an offer.
    enum Answer: Sendable {
        case response(OwnerResponse)
        case failure(any Error)
        case declined
    }

    private struct State {
        var answer: (@Sendable (Answer) -> Void)?
        var withdrawal: Withdrawal?
        var withdrawalHandler: (@Sendable (Withdrawal) -> Void)?
    }

    /// The original request, which an adapter can adapt again.
    package let original: URLRequest
    /// The request as it was last sent; `nil` if the adapter rejected it.
    package let adapted: URLRequest?
    /// The body that replaced the request's body; `nil` if it was not replaced. A temporary file is deleted when the
    /// request ends.
    package let upload: UploadBody?
    /// The request's error. Handlers receive it if no owner takes the request.
    package let error: any Error
    /// The head of the rejected response, if one arrived.
    package let response: HTTPURLResponse?
    /// The number of retries.
    package let retryCount: Int

    private let state: Mutex<State>

    /// - Parameters:
    ///   - outcome: The outcome of the request.
    ///   - answer: Called at most once, on any thread.
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

    // MARK: Called by the owner

    /// Ends the request with a response.
    ///
    /// The response is not validated, the retriers are not called, and credentials that are set later do not send the
    /// request again. The body is delivered in the request's usual way; for a download it is written to the file.
    package func finish(with response: OwnerResponse) { end(.response(response)) }

    /// Ends the request with an error. The other results of its last attempt, for example a rejected response, are
    /// kept.
    package func fail(with error: any Error) { end(.failure(error)) }

    /// Sets a handler that is called if the request ends without its owner.
    ///
    /// The handler is called at most once, on the request's own queue and before the request's handlers. If the
    /// request has already ended, it is called immediately. It is not called after ``finish(with:)`` or
    /// ``fail(with:)`` has taken effect.
    ///
    /// - Parameter handler: This object retains it, so it must not retain this object.
    package func whenWithdrawn(_ handler: @escaping @Sendable (Withdrawal) -> Void) {
        let withdrawal = state.withLock { state in
            if state.withdrawal == nil { state.withdrawalHandler = handler }
            return state.withdrawal
        }
        if let withdrawal { handler(withdrawal) }
    }

    private func end(_ answer: Answer) {
        let taken = state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
        guard let taken, !RequestFault.dropsAnswer.occurs else { return }
        taken(answer)
    }

    // MARK: Called by the request

    /// Ends the offer because the request has ended. Later answers have no effect.
    func withdraw(_ withdrawal: Withdrawal) {
        let taken = state.withLock { state in
            defer { (state.answer, state.withdrawalHandler, state.withdrawal) = (nil, nil, withdrawal) }
            return (answer: state.answer, handler: state.withdrawalHandler)
        }
        taken.handler?(withdrawal)
    }

    /// Releases the owner's handler because the answer has taken effect.
    func settle() {
        let handler = state.withLock { state in
            defer { state.withdrawalHandler = nil }
            return state.withdrawalHandler
        }
        withExtendedLifetime(handler) {}
    }
}
