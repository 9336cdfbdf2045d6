public import Foundation

/// The closure of a lane: the time until which the lane sends no requests, and the reason.
public struct LaneClosure: Hashable, Sendable {
    /// The cause of a closure.
    public enum Cause: Hashable, Sendable {
        /// The server sent a `Retry-After` header. The closure survives a restart.
        case retryAfter
        /// Attempts failed. The closure ends early when the lane has no requests left, at a restart, when the
        /// network changes, and when the server responds again; see
        /// <doc:BeingAGoodCitizen#When-a-server-responds-again>.
        case failures
        /// This machine was short of descriptors, memory, threads or ports.
        case localShortage
    }

    /// The time at which the lane opens, by the wall clock. ``OfflineQueue/flush(host:lane:)`` opens the lane earlier.
    public let until: Date
    /// The status of the response with `Retry-After`: 429 or 503. `nil` for other causes.
    public let status: Int?
    /// The cause of the closure.
    public let cause: Cause
}

extension LaneClosure: CustomStringConvertible {
    /// The cause in words, without the time at which the lane opens.
    public var description: String {
        switch cause {
        case .retryAfter: "lane closed by Retry-After" + (status.map { " of HTTP \($0)" } ?? "")
        case .failures: "\(QueuedReason.laneClosed)"
        case .localShortage: "\(QueuedReason.localShortage)"
        }
    }
}
