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
