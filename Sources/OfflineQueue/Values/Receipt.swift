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

/// The reason why a request waits.
public enum QueuedReason: Hashable, Sendable {
    /// The network has no route to the host.
    case notReachable
    /// An attempt failed with the given error. The queue retries it automatically.
    case attemptFailed(String)
    /// Its lane is closed after failures of earlier requests or by a server's `Retry-After`; see ``LaneClosure``.
    case laneClosed
    /// It is due, but no slot is free: the limit of requests in flight is reached for its origin or for the queue.
    case noFreeSlot
    /// This machine was recently short of descriptors, memory, threads or ports. The queue retries soon.
    case localShortage
    /// The lane is FIFO and has earlier requests.
    case behindEarlier
    /// It waits until other requests are delivered.
    case blocked
    /// It is scheduled for later.
    case scheduled
    /// The queue or its lane is paused.
    case paused
    /// It needs attention before the next attempt; see ``HoldReason``.
    case held(HoldReason)
    /// The id was already in the queue.
    case alreadyQueued
    /// The queue is not started, or is stopping.
    case stopped
    /// The caller's task was cancelled.
    case cancelled
}

/// The reason why a request is held instead of retried.
public enum HoldReason: String, Hashable, Sendable, CaseIterable {
    /// The server's certificate was not trusted. Retried automatically after 5 to 15 minutes, or when the path changes,
    /// because captive portals and wrong clocks cause the same error.
    case trust
    /// This machine is misconfigured, for example a certificate file or a cipher list. Retried after
    /// ``OfflineQueue/flush()`` or a restart.
    case configuration
    /// The server requires credentials. Retried after ``OfflineQueue/flush()`` or a restart.
    case auth
    /// The server may have applied the request, and a second attempt may apply it twice. It waits for
    /// ``OfflineQueue/retry(_:newKey:)`` or ``OfflineQueue/cancel(_:)``.
    case ambiguous
    /// A user or caller held it with ``OfflineQueue/hold(_:)``.
    case user
    /// A request that it depends on was given up or cancelled.
    case dependency

    /// The reasons whose cause a restart or a flush may have removed.
    package static let mendable: Set<HoldReason> = [.trust, .configuration, .auth]
}

extension QueuedReason: CustomStringConvertible {
    /// A human-readable form of the reason.
    public var description: String {
        switch self {
        case .notReachable: "no way to the host"
        case .attemptFailed(let words): words
        case .laneClosed: "waiting after failures of earlier requests"
        case .noFreeSlot: "no free slot"
        case .localShortage: "this machine is short of descriptors, memory, threads or ports"
        case .behindEarlier: "earlier requests go first"
        case .blocked: "waiting for the requests it depends on"
        case .scheduled: "waiting for its time"
        case .paused: "paused"
        case .held(let reason): "held: \(reason.rawValue)"
        case .alreadyQueued: "already queued under this id"
        case .stopped: "the queue is not running"
        case .cancelled: "no longer waited for"
        }
    }
}
