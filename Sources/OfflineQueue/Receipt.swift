public import Foundation

/// The queue's word on a request.
public struct Receipt: Hashable, Sendable {
    /// What became of the call.
    public enum Outcome: String, Hashable, Sendable {
        /// The request is in the queue: on the disk, as far as ``Receipt/durability`` says.
        case accepted
        /// The id was there before; nothing was changed.
        case known
        /// The queue was full, and the policy was ``FullQueuePolicy/dropNewest``: the request is not kept.
        case dropped
    }

    /// The request's id. Ids that the queue makes are never used again for another request.
    public let id: String
    /// What became of the call.
    public let outcome: Outcome
    /// The value of the idempotency key that every attempt carries, if one does.
    public let idempotencyKey: String?
    /// What the request survives from now on.
    public let durability: Durability

    /// Whether this call put the request into the queue.
    public var isNew: Bool { outcome == .accepted }
}

/// What became of a request that was tried at once. Unless it was dropped, the request is safe.
public enum SendResult: Hashable, Sendable {
    /// The server answered as expected. The body is cut after 64 KiB. With an id that had been delivered before, the
    /// body is empty; ``OfflineQueue/request(_:)`` has the answer.
    case delivered(id: String, status: Int, body: Data)
    /// It waits in the queue.
    case queued(id: String, reason: QueuedReason)
    /// It was given up, because trying again cannot help.
    case dead(id: String, reason: String)
    /// The queue was full, and the policy was ``FullQueuePolicy/dropNewest``: it is not kept.
    case dropped(id: String)
}

/// Why a request waits.
public enum QueuedReason: Hashable, Sendable {
    /// The network has no way to the host.
    case notReachable
    /// An attempt failed; the text says how. It is tried again by itself.
    case attemptFailed(String)
    /// Earlier requests of its lane are waiting after a failure.
    case laneClosed
    /// It is due, but as many requests are being sent as may be: to its origin, or in all.
    case noFreeSlot
    /// This machine was short of descriptors, memory, threads or ports a moment ago. It is tried again soon.
    case localShortage
    /// The lane keeps order and has earlier requests.
    case behindEarlier
    /// It waits for other requests to be delivered.
    case blocked
    /// It was asked not to be tried before a time.
    case scheduled
    /// The queue, or its lane, is paused.
    case paused
    /// It needs attention before it is tried again; see ``HoldReason``.
    case held(HoldReason)
    /// The id was in the queue already.
    case alreadyQueued
    /// The queue is not started, or is stopping.
    case stopped
    /// The caller's task was cancelled.
    case cancelled
}

/// Why a request is held instead of being tried again.
public enum HoldReason: String, Hashable, Sendable, CaseIterable {
    /// The server's certificate was not trusted. Tried again by itself after 5 to 15 minutes, or when the
    /// path changes, because portals and wrong clocks look the same.
    case trust
    /// Something on this machine is set up wrongly: a certificate file, a cipher. Tried again after
    /// ``OfflineQueue/flush()`` or a restart.
    case configuration
    /// The server wants credentials. Tried again after ``OfflineQueue/flush()`` or a restart.
    case auth
    /// It may have been applied, and sending it twice may apply it twice. Waits for
    /// ``OfflineQueue/retry(_:newKey:)`` or ``OfflineQueue/cancel(_:)``.
    case ambiguous
    /// Somebody asked for it: ``OfflineQueue/hold(_:)``.
    case user
    /// A request that had to be delivered before was given up or dropped.
    case dependency

    /// What a restart or a flush may have mended.
    package static let mendable: Set<HoldReason> = [.trust, .configuration, .auth]
}

extension QueuedReason: CustomStringConvertible {
    /// The reason in words for a person.
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
