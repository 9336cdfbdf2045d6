public import Foundation

/// The stored state of a request in the queue.
public struct QueuedRequest: Hashable, Sendable {
    /// The state of a request.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// It waits for an attempt.
        case pending
        /// It waits until other requests are delivered.
        case blocked
        /// An attempt is in progress.
        case inflight
        /// It needs attention; see ``QueuedRequest/holdReason``.
        case held
        /// The server responded as expected.
        case delivered
        /// It was given up.
        case dead
        /// It was cancelled by a caller or user.
        case cancelled
        /// A newer request with the same replace key replaced it.
        case superseded

        /// Whether the state is final: `delivered`, `dead`, `cancelled` or `superseded`.
        public var isFinal: Bool {
            switch self {
            case .pending, .blocked, .inflight, .held: false
            case .delivered, .dead, .cancelled, .superseded: true
            }
        }
    }

    /// The request's id.
    public let id: String
    /// The position of the request, which determines the order of a FIFO lane. It rises with every accepted request.
    public let sequence: Int64
    /// The current state.
    public let state: State
    /// The reason for the hold; `nil` unless it is held.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    public let url: String
    /// The lane's label; `nil` for the origin's common lane.
    public let lane: String?
    /// Whether its lane is FIFO.
    public let isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last.
    public let priority: Int
    /// The length of the body in bytes. It is also known after the body was removed from the store.
    public let bodyBytes: Int64
    /// The number of counted attempts. Attempts that failed because the network was down, or because this machine was
    /// short of a resource, do not count.
    public let attempts: Int
    /// The number of attempts that did not count, because the network was down or this machine was short of
    /// descriptors, memory, threads or ports.
    public let deferrals: Int
    /// The time at which it was enqueued, by the wall clock at that moment.
    public let created: Date
    /// The time at which a pending request is due. Its lane may be closed for longer.
    public let due: Date?
    /// The time at which it is given up unless delivered before, by the wall clock.
    public let expires: Date?
    /// The time at which it reached a final state.
    public let finished: Date?
    /// The status of the last response, if there was one.
    public let status: Int?
    /// The error of the last attempt, the reason why it was given up, or the dependency that failed.
    public let lastError: String?
    /// The closure of its lane; `nil` if none is known. A lane is closed by a server's `Retry-After`, after
    /// failures, or because this machine was short of a resource.
    public internal(set) var laneClosure: LaneClosure?
    /// The reason why it waits while it is pending or blocked; `nil` if it is about to be tried. Only a running queue
    /// reports ``QueuedReason/notReachable``, ``QueuedReason/laneClosed`` after failures, ``QueuedReason/noFreeSlot``
    /// and ``QueuedReason/localShortage``.
    public internal(set) var waitReason: QueuedReason?

    let laneID: Int64?
    /// Whether it waits for an earlier request of a lane in order.
    let isBehind: Bool
}
