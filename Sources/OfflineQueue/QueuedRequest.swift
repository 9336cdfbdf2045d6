public import Foundation

/// A request as ``OfflineQueue/OfflineQueue/list(limit:)`` shows it.
public struct QueuedRequest: Hashable, Sendable {
    /// Where a request is on its way.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Waits to be tried.
        case pending
        /// Is being tried.
        case inflight
        /// Needs attention; see ``QueuedRequest/holdReason``.
        case held
        /// Was answered with a 2xx status.
        case delivered
        /// Was given up.
        case dead
    }

    /// The request's id.
    public let id: String
    /// Where it is on its way.
    public let state: State
    /// Why it is held, when it is.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    public let url: String
    /// The lane's label, `nil` for the common lane of the origin.
    public let lane: String?
    /// Whether its lane keeps order.
    public let isFIFO: Bool
    /// How many attempts were made. Those that failed for want of a network do not count.
    public let attempts: Int
    /// How many attempts ended before they could count, for want of a network.
    public let deferrals: Int
    /// When it was enqueued, by the wall clock of that moment.
    public let created: Date
    /// When it is due, while it is pending. Its lane may be closed for longer.
    public let due: Date?
    /// When it was delivered or given up.
    public let finished: Date?
    /// The status of its last answer, if it had one.
    public let status: Int?
    /// What its last attempt failed of, or why it was given up.
    public let lastError: String?
}

/// How many requests the queue holds.
public struct QueueCounts: Hashable, Sendable {
    /// Waiting to be tried.
    public var pending = 0
    /// Being tried.
    public var inflight = 0
    /// Needing attention.
    public var held = 0
    /// Delivered, of those the history still has.
    public var delivered = 0
    /// Given up, of those the history still has.
    public var dead = 0

    /// Nothing at all.
    public init() {}
}
