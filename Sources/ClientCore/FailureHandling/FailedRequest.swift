package import Foundation
package import FoundationNetworking
internal import NetwatchEventLoop
package import NetwatchTransport

/// A failed request that is offered to a ``FailedRequestOwner``, which can finish it.
///
/// The offer ends once, in one of these ways:
///
/// - The owner calls ``finish(with:)`` or ``fail(with:)``. Only the first call counts.
/// - The owner declines: the last reference to this object is released. The request is then offered to the next
///   owner. If there is none, the request fails with its original error.
/// - The request is cancelled or its session ends; see ``whenWithdrawn(_:)``.
///
/// Suspending or resuming the request does not affect the offer. All functions can be called from any thread.
package final class FailedRequest: Sendable {
    /// The reason why a request ended before its owner had finished it.
    package enum Withdrawal: Sendable {
        case cancelled
        case sessionDropped
    }

    /// The owner's answer to the offer.
    enum Answer: Sendable {
        case response(OwnerResponse, (any Error)?)
        /// The request's error, and the reason why its owner could not store the request.
        case failure(any Error, refusal: (any Error)?)
        case declined
    }

    private struct State {
        var answer: (@Sendable (Answer) -> Void)?
        var queued: (@Sendable (any Sendable) -> Void)?
        var abandonment: (any Error)?
        var withdrawal: Withdrawal?
        var withdrawalHandler: (@Sendable (Withdrawal) -> Void)?
    }

    /// The request as the caller created it, before any adapter changed it.
    package let original: URLRequest
    /// The request as it was last adapted; ``original`` if the adapter threw in the first attempt.
    package let adapted: URLRequest
    /// The body that was sent instead of the request's own; `nil` if the request is not an upload. If the body is a
    /// temporary file, that file is deleted when the request ends.
    package let upload: UploadBody?
    /// The error of the last attempt. Handlers receive it if all owners decline.
    package let error: any Error
    /// The head of the response that was rejected; `nil` if no response arrived.
    package let response: HTTPURLResponse?
    /// The number of retries before this failure.
    package let retryCount: Int
    /// Whether a server may have received an attempt before the last attempt.
    package let wasReceived: Bool
    /// The maximum number of body bytes that the request accepts; `nil` if it does not keep the body in memory.
    package let maximumDataBytes: Int?
    /// The version of HTTP that the request or its session has chosen; `nil` for the default.
    package let httpVersion: HTTPVersion?
    /// Whether credentials were set with ``Request/authenticate(usingCredential:)``.
    package let hasCredential: Bool

    private let state: Lock<State>

    /// - Parameters:
    ///   - outcome: The outcome of the last attempt: its request, and the head of the response if one arrived.
    ///   - queued: Receives the owner's receipt. Called at most once, on any thread, and not after `answer`.
    ///   - answer: Receives the owner's answer. Called at most once, on any thread.
    init(
        _ original: URLRequest,
        _ outcome: RequestOutcome,
        upload: UploadBody?,
        error: any Error,
        retryCount: Int,
        wasReceived: Bool,
        maximumDataBytes: Int?,
        httpVersion: HTTPVersion?,
        hasCredential: Bool,
        queued: @escaping @Sendable (any Sendable) -> Void,
        answer: @escaping @Sendable (Answer) -> Void
    ) {
        self.original = original
        adapted = outcome.request ?? original
        self.upload = upload
        self.error = error
        response = outcome.response
        self.retryCount = retryCount
        self.wasReceived = wasReceived
        self.maximumDataBytes = maximumDataBytes
        self.httpVersion = httpVersion
        self.hasCredential = hasCredential
        state = Lock(State(answer: answer, queued: queued))
    }

    deinit { end(.declined) }

    // MARK: Called by the owner

    /// The reason why the request ended before its owner finished it; `nil` if the request is still open, or if the
    /// owner finished or declined it.
    package var withdrawal: Withdrawal? { state.withLock { $0.withdrawal } }

    /// Reports that the request is stored and will be sent later. Its state becomes
    /// ``Request/State-swift.enum/queued``, and the handlers of ``Request/whenQueued(_:)`` are called. Only the first
    /// call has an effect.
    ///
    /// - Parameters:
    ///   - receipt: The owner's value for the stored request, for example with the request's id. Those handlers receive
    ///     it.
    ///   - abandonment: The error of the request if its session is dropped before the owner has finished it.
    /// - Returns: Whether the report has taken effect; `false` if the request had ended, or was reported before.
    package func reportQueued(_ receipt: any Sendable, abandonedWith abandonment: any Error) -> Bool {
        let queued = state.withLock { state in
            defer { (state.queued, state.abandonment) = (nil, abandonment) }
            return state.queued
        }
        queued?(receipt)
        return queued != nil
    }

    /// Ends the request with a response.
    ///
    /// The request's validators check the response, unless the owner gives an error. Retriers are not called, and
    /// credentials that are set later do not send the request again. The body is delivered like one from the network.
    /// A download writes it to the file.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - error: The error with which the request fails in spite of the response. Default `nil`.
    package func finish(with response: OwnerResponse, error: (any Error)? = nil) {
        end(.response(response, error))
    }

    /// Ends the request with an error. Handlers still receive the other results of the last attempt, for example a
    /// rejected response.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - refusal: The reason why the owner could not store the request; see ``Request/ownerRefusal``. Default `nil`.
    package func fail(with error: any Error, refusal: (any Error)? = nil) {
        end(.failure(error, refusal: refusal))
    }

    /// Sets a handler that is called if the request ends before its owner has finished it.
    ///
    /// The handler is called at most once, on the request's own queue and before the request's handlers. If the
    /// request has already ended, the handler is called immediately, on the caller's thread. It is not called after
    /// ``finish(with:)`` or ``fail(with:)`` has taken effect.
    ///
    /// - Parameter handler: Receives the reason. This object retains the handler, so the handler must not retain this
    ///   object.
    package func whenWithdrawn(_ handler: @escaping @Sendable (Withdrawal) -> Void) {
        let withdrawal = state.withLock { state in
            if state.withdrawal == nil { state.withdrawalHandler = handler }
            return state.withdrawal
        }
        if let withdrawal { handler(withdrawal) }
    }

    private func end(_ answer: Answer) {
        let taken = state.withLock { state in
            defer { (state.answer, state.queued) = (nil, nil) }
            return state.answer
        }
        guard let taken, !RequestFault.dropsAnswer.occurs else { return }
        taken(answer)
    }

    // MARK: Called by the request

    /// Ends the offer because the request has ended. An answer that the owner gives later has no effect.
    ///
    /// - Returns: The owner's error for a stored request whose session is dropped; `nil` if no owner has stored it.
    func withdraw(_ withdrawal: Withdrawal) -> (any Error)? {
        let taken = state.withLock { state in
            defer {
                (state.answer, state.queued) = (nil, nil)
                (state.withdrawalHandler, state.withdrawal) = (nil, withdrawal)
            }
            return (answer: state.answer, handler: state.withdrawalHandler, abandonment: state.abandonment)
        }
        taken.handler?(withdrawal)
        return taken.abandonment
    }

    /// Releases the handler of ``whenWithdrawn(_:)``, because the owner's answer has taken effect.
    func settle() {
        let handler = state.withLock { state in
            defer { state.withdrawalHandler = nil }
            return state.withdrawalHandler
        }
        withExtendedLifetime(handler) {}
    }
}

/// The response with which a ``FailedRequestOwner`` finishes a failed request.
package struct OwnerResponse: Sendable {
    /// The URL of the response: the requested URL, or the last one after redirects.
    package var url: URL
    package var head: TransferHead
    package var body: Data
    /// The metrics of the response; `nil` keeps the metrics of the request's last attempt.
    package var metrics: RequestMetrics?

    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - head: The status and the header fields.
    ///   - body: The decoded body. Default empty.
    ///   - metrics: The metrics of the response. Default `nil`: the metrics of the request's last attempt are kept.
    package init(url: URL, head: TransferHead, body: Data = Data(), metrics: RequestMetrics? = nil) {
        self.url = url
        self.head = head
        self.body = body
        self.metrics = metrics
    }
}

/// The body of a failed request, for an owner that stores it.
package enum OfferedBody: Sendable {
    case data(Data)
    /// A file. If it is temporary, it exists until the request ends.
    case file(URL)
    /// A body that can be read once. Its reads block.
    case reader(any BlockingReader)
    /// A stream that an earlier attempt has read, at least in part.
    case consumed
}

extension FailedRequest {
    /// Returns the body that the request would send next. A stream is taken: no later attempt can send it.
    package func takeBody() -> OfferedBody {
        switch upload {
        case .data(let data): .data(data)
        case .file(let url, _): .file(url)
        case .replayable(let body): .reader(body.makeReader())
        case .stream(let stream): stream.takeUnread().map(OfferedBody.reader) ?? .consumed
        case nil: .data(original.httpBody ?? Data())
        }
    }
}
