public import Foundation

/// The result of enqueuing a request.
public struct Receipt: Hashable, Sendable {
    /// The effect of enqueuing on the queue.
    public enum Outcome: String, Hashable, Sendable {
        /// The request is stored, with the durability ``Receipt/durability``.
        case accepted
        /// The queue already knew the id. Nothing was changed.
        case known
        /// The queue or the lane was full, or the quota of the user was reached, and the policy was
        /// ``FullQueuePolicy/dropNewest``: the request was not stored.
        case dropped
    }

    /// The request's id. Generated ids are never reused.
    public let id: String
    /// The effect of the call on the queue.
    public let outcome: Outcome
    /// The value of the idempotency key that every attempt sends, if there is one.
    public let idempotencyKey: String?
    /// The failures that the stored request survives.
    public let durability: Durability

    /// Whether this call added the request to the queue.
    public var isNew: Bool { outcome == .accepted }
}

/// The result of ``OfflineQueue/send(_:options:)``. Except in the case ``dropped(id:)``, the request is stored.
public enum SendResult: Hashable, Sendable {
    /// The server responded as expected. `body` contains the first 64 KiB of the response's body.
    ///
    /// If the request had been delivered before this call, `body` is empty. ``OfflineQueue/request(_:)`` then returns
    /// the stored response.
    case delivered(id: String, status: Int, body: Data)
    /// The request waits in the queue.
    case queued(id: String, reason: QueuedReason)
    /// The request was given up, cancelled or replaced, and is not sent again.
    case dead(id: String, reason: String)
    /// The queue or the lane was full, or the quota of the user was reached, and the policy was
    /// ``FullQueuePolicy/dropNewest``: the request was not stored.
    case dropped(id: String)
}
