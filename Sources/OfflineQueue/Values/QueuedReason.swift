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

extension QueuedReason: CustomStringConvertible {
    /// A human-readable form of the reason.
    public var description: String {
        switch self {
        case .notReachable: "no route to host"
        case .attemptFailed(let words): words
        case .laneClosed: "waiting after failures of earlier requests"
        case .noFreeSlot: "no free slot"
        case .localShortage: "this machine is short of descriptors, memory, threads or ports"
        case .behindEarlier: "waiting for earlier requests of the lane"
        case .blocked: "waiting for the requests it depends on"
        case .scheduled: "scheduled for later"
        case .paused: "paused"
        case .held(let reason): "held: \(reason.rawValue)"
        case .alreadyQueued: "already queued with this id"
        case .stopped: "the queue is not running"
        case .cancelled: "the wait was cancelled"
        }
    }
}
