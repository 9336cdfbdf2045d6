public import Foundation

/// The result of enqueuing a request.
public struct Receipt: Hashable, Sendable {
    /// The outcome of the call.
    public enum Outcome: String, Hashable, Sendable {
        /// The request is stored, with the durability that ``Receipt/durability`` states.
        case accepted
        /// The id was already known; nothing was changed.
        case known
        /// The queue was full and the policy was ``FullQueuePolicy/dropNewest``: the request was not stored.
        case dropped
    }

    /// The request's id. Generated ids are never reused.
    public let id: String
    /// The outcome of the call.
    public let outcome: Outcome
    /// The value of the idempotency key that every attempt carries, if there is one.
    public let idempotencyKey: String?
    /// The failures that the request survives from now on.
    public let durability: Durability

    /// Whether this call added the request to the queue.
    public var isNew: Bool { outcome == .accepted }
}

/// The result of a request that was tried immediately. Unless it was dropped, the request is stored.
public enum SendResult: Hashable, Sendable {
    /// The server responded as expected. The body is cut after 64 KiB. For an id that was delivered before, the body is
    /// empty; ``OfflineQueue/request(_:)`` returns the stored response.
    case delivered(id: String, status: Int, body: Data)
    /// It waits in the queue.
    case queued(id: String, reason: QueuedReason)
    /// It was given up, because another attempt cannot succeed.
    case dead(id: String, reason: String)
    /// The queue was full and the policy was ``FullQueuePolicy/dropNewest``: the request was not stored.
    case dropped(id: String)
}
