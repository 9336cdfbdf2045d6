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

/// The offer of a failed request to its owners: the owners, the failed request that one of them holds, and the handlers
/// that wait until an owner has stored the request.
///
/// No method calls an owner or a handler. The request calls them while it does not access this value.
struct OwnerOffer {
    /// Receives the receipt of the owner that stored the request; see ``FailedRequest/reportQueued(_:abandonedWith:)``.
    typealias QueuedHandler = @Sendable (any Sendable) -> Void

    private var owners = FailureOwners()
    /// The header fields that the request's own owner adds to all attempts.
    var addedFields: HTTPHeaders = [:]
    /// The failed request that an owner holds. Weak, because an owner declines by releasing the object.
    private(set) weak var failed: FailedRequest?
    /// The receipt of the owner that stored the request; `nil` if none has stored it.
    private(set) var receipt: (any Sendable)?
    private var queuedHandlers: [QueuedHandler] = []
    /// The owner's error if the session is dropped while the owner stores the request.
    private(set) var abandonment: (any Error)?

    /// Sets the request's own owner and replaces an earlier one.
    mutating func setOwn(_ owner: any FailedRequestOwner) { owners.setOwn(owner) }

    /// Starts another attempt: its failure is offered to all owners again.
    mutating func beginAttempt() { owners.begin() }

    /// Returns the next owner to offer the failure to, and records the offer; `nil` if every owner has received an
    /// offer.
    ///
    /// - Parameter session: The session's current owner.
    mutating func nextOwner(_ session: (any FailedRequestOwner)?) -> (any FailedRequestOwner)? {
        owners.next(session)
    }

    /// Records the failed request that is passed to an owner.
    mutating func begin(_ failed: FailedRequest) { self.failed = failed }

    /// Records the receipt of the owner that stored the request.
    mutating func store(_ receipt: any Sendable) { self.receipt = receipt }

    mutating func addQueuedHandler(_ handler: @escaping QueuedHandler) { queuedHandlers.append(handler) }

    /// Removes and returns the handlers that wait for the receipt.
    mutating func takeQueuedHandlers() -> [QueuedHandler] {
        defer { queuedHandlers = [] }
        return queuedHandlers
    }

    /// Records the owner's error of a withdrawn offer; `nil` if no owner had stored the request.
    mutating func withdrawn(_ abandonment: (any Error)?) { self.abandonment = abandonment }

    /// Releases the program's owners and handlers, which may capture the request and form a retain cycle.
    mutating func releaseClosures() {
        owners = FailureOwners()
        queuedHandlers = []
    }
}

/// The owners that a failed request is offered to: the request's own owner, then its session's, each once per failure.
///
/// The request's own owner comes first, because the caller who set that owner knows more about the request. The caller
/// may also set that owner while the session's owner is deciding. In that case the new owner is offered the failure
/// after the session's owner has declined.
struct FailureOwners: Sendable {
    private var own: (any FailedRequestOwner)?
    private var isOwnAsked = false
    private var isSessionAsked = false

    /// Sets the request's own owner and replaces an earlier one.
    mutating func setOwn(_ owner: any FailedRequestOwner) {
        own = owner
        isOwnAsked = false
    }

    /// Starts another attempt: its failure is offered to all owners again.
    mutating func begin() {
        (isOwnAsked, isSessionAsked) = (false, false)
    }

    /// Returns the next owner to offer the failure to, and records the offer; `nil` if every owner has received an
    /// offer.
    ///
    /// - Parameter session: The session's current owner.
    mutating func next(_ session: (any FailedRequestOwner)?) -> (any FailedRequestOwner)? {
        if let own, !isOwnAsked {
            isOwnAsked = true
            return own
        }
        guard !isSessionAsked else { return nil }
        isSessionAsked = true
        return session
    }
}
