public import Foundation

/// A request in the queue or its history, with its state but without its headers, its body and its response.
public struct QueuedRequest: Hashable, Sendable {
    /// The state of a request.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// The request waits for its next attempt.
        case pending
        /// The request waits until the requests that it depends on are delivered.
        case blocked
        /// An attempt is in progress.
        case inflight
        /// The request is not sent until its hold ends; see ``QueuedRequest/holdReason``.
        case held
        /// The server responded as expected.
        case delivered
        /// The queue gave the request up.
        case dead
        /// A user or program cancelled the request.
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
    /// The number of the request in the order of acceptance, in which FIFO lanes send.
    public let sequence: Int64
    /// The current state.
    public let state: State
    /// The reason for the hold; `nil` if the request is not held.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    /// In place of secrets in the query, such as the signature of a signed URL, it contains `REDACTED`.
    public let url: String
    /// The lane's label; `nil` for the origin's common lane.
    public let lane: String?
    /// Whether the lane is FIFO.
    public let isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last.
    public let priority: Int
    /// The request's tag; see ``EnqueueOptions/tag``.
    public let tag: String?
    /// The name of the credential that each attempt adds; see ``EnqueueOptions/credential``.
    public let credential: String?
    /// The id of the user who enqueued the request; `nil` if it was enqueued within the process, or if that is not
    /// known.
    package let submitter: UInt32?
    /// The length of the body in bytes. It stays known after the store has removed the body.
    public let bodyBytes: Int64
    /// The number of attempts, except those that are counted in ``deferrals``.
    public let attempts: Int
    /// The number of attempts that do not count towards ``EnqueueOptions/maximumAttempts``.
    ///
    /// These are attempts that the queue ended itself, attempts that ended with the hold ``HoldReason/auth``, and attempts
    /// that failed because the network was down, because a captive portal seemed to respond, or because this machine was
    /// short of descriptors, memory, threads or ports.
    public let deferrals: Int
    /// The time at which the request was enqueued, by the wall clock. If the clock is set later during the same boot, the
    /// time is adjusted.
    public let created: Date
    /// The time at which a pending request is tried next: when it is due, or when its lane opens if that is later.
    ///
    /// Constraints, rate limits and missing slots may delay the attempt; see ``waitReason``.
    public var due: Date? { requestDue.map { max($0, laneClosure?.until ?? $0) } }
    /// The time of the next try of a request that is held for ``HoldReason/trust`` or ``HoldReason/auth``, by the wall clock;
    /// `nil` for other requests, and if the queue is not running.
    ///
    /// Of the requests that are held for ``HoldReason/auth`` with the same credential and origin, one is tried at that time.
    /// Its success releases the others.
    public internal(set) var nextTry: Date?
    /// The time at which the queue gives the request up if it is not delivered, by the wall clock.
    public let expires: Date?
    /// The time at which the request reached a final state.
    public let finished: Date?
    /// The status of the last response, if there was one.
    public let status: Int?
    /// The error of the last attempt, the reason why the queue gave the request up, or the dependency that failed.
    public let lastError: String?
    /// The closure of the request's lane; `nil` if none is known. ``LaneClosure/cause`` is the reason.
    public internal(set) var laneClosure: LaneClosure?
    /// The reason why a pending or blocked request waits; `nil` if it is about to be tried.
    ///
    /// Only a running queue reports ``QueuedReason/notReachable(_:)``, ``QueuedReason/captivePortal(page:)``,
    /// ``QueuedReason/noFreeSlot``, ``QueuedReason/paced``, ``QueuedReason/rateLimited``, ``QueuedReason/retryBudget``,
    /// ``QueuedReason/constraint(_:)``, ``QueuedReason/localShortage``, and ``QueuedReason/laneClosed`` for a lane that
    /// is closed after failures.
    public internal(set) var waitReason: QueuedReason?
    /// The maximum number of requests in flight to the request's origin, if signs of overload have lowered it and
    /// ``waitReason`` is ``QueuedReason/noFreeSlot``; otherwise `nil`.
    public internal(set) var originLimit: Int?

    /// The id of the request for which this one waits, if ``waitReason`` is ``QueuedReason/behindEarlier`` or
    /// ``QueuedReason/blocked``; otherwise `nil`.
    ///
    /// This is the first request of the FIFO lane, or the first of the dependencies that are not delivered yet.
    public var waitsForID: String? {
        waitReason == .behindEarlier || waitReason == .blocked ? precedingID : nil
    }

    /// The time at which a pending request is due, regardless of its lane.
    package let requestDue: Date?
    let laneID: Int64?
    /// The id of the first request of the FIFO lane, if it is another one. For a blocked request, the id of its first
    /// dependency that is not delivered yet.
    let precedingID: String?
}
