public import NetworkReachability

/// The reason why a request waits in the queue.
public enum QueuedReason: Hashable, Sendable {
    /// There is no path to the host, for example because an interface has no carrier.
    case notReachable(PathStatus.Reason)
    /// A captive portal intercepts plain HTTP on the path to the host. `page` is the URL at which a user can log in, if
    /// it is known. Only reported with ``OfflineQueue/Configuration/captivePortalProbe``.
    case captivePortal(page: String?)
    /// An attempt failed with the given error. The queue tries the request again.
    case attemptFailed(String)
    /// The request's lane is closed, after failures or by a server's `Retry-After`; see ``LaneClosure``.
    case laneClosed
    /// The request is due, but its origin or the queue has reached the maximum number of requests in flight. After an
    /// outage, and after signs of overload, this number is lower. Or the queue has reached the maximum number of hosts that
    /// it watches.
    case noFreeSlot
    /// The request is due, but the queue delays it so that clients do not return all at once after an outage
    /// (``OfflineQueue/Configuration/reconnectSpread``).
    case paced
    /// The request is due, but a rate limit permits no request now (``OfflineQueue/Configuration/rates``).
    case rateLimited
    /// The last attempt failed, and the origin's budget of retries permits no further one now; see
    /// <doc:BeingAGoodCitizen#The-retry-budget>.
    case retryBudget
    /// The request waits because a constraint is not met (``EnqueueOptions/constraints``).
    case constraint(UnmetConstraint)
    /// This machine was recently short of descriptors, memory, threads or ports. The queue tries the request again
    /// within 30 seconds.
    case localShortage
    /// The request's lane is FIFO and has earlier requests.
    case behindEarlier
    /// The request depends on requests that are not delivered yet.
    case blocked
    /// The request is scheduled for later (``EnqueueOptions/notBefore``).
    case scheduled
    /// The queue or the request's lane is paused.
    case paused
    /// The request is held; ``HoldReason`` describes what ends the hold.
    case held(HoldReason)
    /// The queue already contains a request with this id, so this call did not send one.
    case alreadyQueued
    /// The queue was not started, or is stopping.
    case stopped
    /// The caller's task was cancelled during ``OfflineQueue/send(_:options:)``. The request stays in the queue.
    case cancelled
}

extension QueuedReason: CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .notReachable(let reason): "not reachable: \(reason)"
        case .captivePortal(let page):
            "a captive portal intercepts plain HTTP" + (page.map { ": \($0)" } ?? "")
        case .attemptFailed(let words): words
        case .laneClosed: "waiting after failures"
        case .noFreeSlot: "no free slot"
        case .paced: "delayed so that clients do not return all at once"
        case .rateLimited: "waiting because of a rate limit"
        case .retryBudget: "waiting because retries to its origin are limited"
        case .constraint(let constraint): "waiting for \(constraint)"
        case .localShortage: "this machine is short of descriptors, memory, threads or ports"
        case .behindEarlier: "waiting for earlier requests of the lane"
        case .blocked: "waiting for the requests it depends on"
        case .scheduled: "scheduled for later"
        case .paused: "paused"
        case .held(let reason): "held (\(reason.rawValue))"
        case .alreadyQueued: "already queued with this id"
        case .stopped: "the queue has stopped"
        case .cancelled: "the wait was cancelled"
        }
    }
}
