internal import ClientCore
internal import Foundation
internal import FoundationNetworking

/// Takes over all failed requests of a session, or a single request that fails, and stores them in a queue.
final class QueueOwner: FailedRequestOwner {
    /// The requests to take over.
    enum Scope: Sendable {
        /// The single request for which the program has named the queue, if ``OfflineOptions`` cover its failure.
        case single
        /// Requests that ``OfflineOptions`` cover and the program wants to be queued.
        case failed(matching: @Sendable (URLRequest) -> Bool)
        /// All requests, before they are sent.
        case unsent
    }

    /// Weak, because the queue may retain the session, which retains this owner. A running queue retains itself.
    private weak let queue: OfflineQueue?
    private let options: OfflineOptions
    private let scope: Scope
    private let batcher = EnqueueBatcher()

    init(_ queue: OfflineQueue, _ options: OfflineOptions, _ scope: Scope) {
        self.queue = queue
        self.options = options
        self.scope = scope
    }

    var takesUnsentRequests: Bool { if case .unsent = scope { true } else { false } }

    func addedFields(for request: URLRequest) -> HTTPHeaders { options.key(for: request) }

    func refusal(of request: URLRequest, hasCredential: Bool) -> (any Error)? {
        guard case .single = scope else { return nil }
        return options.refusal(of: request, hasCredential: hasCredential)
    }

    func offer(_ request: FailedRequest) {
        switch scope {
        case .single:
            guard let queue, let limit = request.maximumDataBytes, options.cover(request) else { return }
            // The request failed before the queue was named, or got its credentials afterwards.
            if let refusal = refusal(of: request.original, hasCredential: request.hasCredential) {
                return request.fail(with: refusal, refusal: refusal)
            }
            QueuedCall(request, queue, batcher, options, maximumDataBytes: limit).start()
        case .failed(let matches):
            guard let queue, let limit = request.maximumDataBytes, options.cover(request),
                matches(request.original)
            else { return }
            QueuedCall(request, queue, batcher, options, maximumDataBytes: limit).start()
        case .unsent:
            // Any other error comes from the adapter or the interceptor, which rejected the request.
            guard request.error is UnsentRequest else { return }
            guard let queue else { return request.refuse(QueueError.released) }
            guard let limit = request.maximumDataBytes else { return request.refuse(QueueError.download) }
            QueuedCall(request, queue, batcher, options, maximumDataBytes: limit).start()
        }
    }
}

extension QueueError {
    fileprivate static var released: QueueError {
        QueueError(.stopped, "the queue that sends the session's requests was released")
    }

    fileprivate static var download: QueueError {
        QueueError(.invalidOption, "a download to a file cannot be queued; use `request` instead")
    }
}

extension FailedRequest {
    /// Ends the request with its own error, because the queue cannot take it over.
    ///
    /// - Parameter cause: The reason, which becomes ``ClientCore/Request/queueError``.
    func refuse(_ cause: any Error) {
        fail(with: error.with(underlying: cause), refusal: cause)
    }
}

extension Error {
    /// Returns the error with the cause for which the queue could not take over the request. Only a `URLError` can
    /// carry it, under `NSUnderlyingErrorKey`.
    fileprivate func with(underlying cause: any Error) -> any Error {
        switch self {
        case is UnsentRequest: return cause
        case let error as URLError:
            var userInfo = error.errorUserInfo
            userInfo[NSUnderlyingErrorKey] = cause
            return URLError(error.code, userInfo: userInfo)
        default: return self
        }
    }
}
