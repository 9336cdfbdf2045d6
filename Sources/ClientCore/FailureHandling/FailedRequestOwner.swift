package import FoundationNetworking

/// An object that finishes failed requests instead of their session, for example a queue that sends them again later.
///
/// A failed request is offered to these owners, in this order, each once per failure:
///
/// 1. the request's own owner, set by ``Request/offerFailure(to:)``;
/// 2. the session's owner, ``SessionManager/failedRequestOwner``.
///
/// The offers are made after all retriers have declined to retry, and before the request's handlers are called.
package protocol FailedRequestOwner: Sendable {
    /// Offers a failed request.
    ///
    /// To accept, the owner retains the ``FailedRequest``, and later calls its `finish(with:)` or `fail(with:)`. To
    /// decline, the owner releases the object, immediately or later.
    ///
    /// Called on the request's own queue, which this function must not block. It is not called for:
    ///
    /// - a cancelled request;
    /// - a request whose `URLRequest` could not be created;
    /// - a transfer whose policy excludes retries (``TransferPolicy/asksRetrier``).
    func offer(_ request: FailedRequest)

    /// Whether the owner is offered requests before they are sent, with the error ``UnsentRequest``. Default `false`.
    var takesUnsentRequests: Bool { get }

    /// Returns header fields that all attempts of a request carry. A field that the request already has is not changed.
    /// Default: none.
    ///
    /// Called once per request, before the first attempt. A session's owner is called before the adapter, on the thread
    /// that creates the request. A request's own owner is called on the request's own queue, and only if it is set
    /// before the first attempt. If another owner replaces it before the first attempt, its fields are dropped.
    func addedFields(for request: URLRequest) -> HTTPHeaders

    /// Returns why the owner can never store a request, whatever its body is; `nil` if it can. Default: `nil`.
    ///
    /// Called once on the request's own queue, when the owner becomes the request's own and the request has not ended.
    /// If there is a reason, the request is not sent, or its transfer is cancelled, and it fails with the reason. The
    /// program then receives the error at its first call, and not only in the first outage. The session's owner is not
    /// called, because it is set for requests of all kinds.
    ///
    /// - Parameters:
    ///   - request: The request as the program created it.
    ///   - hasCredential: Whether the request has credentials; see ``Request/authenticate(usingCredential:)``.
    func refusal(of request: URLRequest, hasCredential: Bool) -> (any Error)?
}

extension FailedRequestOwner {
    package var takesUnsentRequests: Bool { false }

    package func addedFields(for request: URLRequest) -> HTTPHeaders { [:] }

    package func refusal(of request: URLRequest, hasCredential: Bool) -> (any Error)? { nil }
}

/// The error of a request that is offered to its owner before it is sent; see
/// ``FailedRequestOwner/takesUnsentRequests``.
package struct UnsentRequest: Error, CustomStringConvertible {
    package var description: String { "the request was not sent, because no queue has stored it" }
}
