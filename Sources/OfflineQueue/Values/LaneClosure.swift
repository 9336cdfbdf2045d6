public import Foundation

/// The time until which a closed lane sends no requests, and the reason.
public struct LaneClosure: Hashable, Sendable {
    /// The cause of a closure.
    public enum Cause: Hashable, Sendable {
        /// The server asked for it with `Retry-After`. It survives a restart.
        case retryAfter
        /// Attempts failed. The closure ends with the lane's last request, at a restart, and when the network changes.
        case failures
        /// This machine was short of descriptors, memory, threads or ports.
        case localShortage
    }

    /// The time at which the lane opens, by the wall clock. ``OfflineQueue/flush()`` opens it earlier.
    public let until: Date
    /// The status of the response with `Retry-After`: 429 or 503. `nil` for other causes, and for a closure recorded by
    /// an older version.
    public let status: Int?
    /// The cause of the closure.
    public let cause: Cause
}

extension LaneClosure: CustomStringConvertible {
    /// A human-readable description of the closure, without the time at which it ends.
    public var description: String {
        switch cause {
        case .retryAfter: "lane closed by Retry-After" + (status.map { " of HTTP \($0)" } ?? "")
        case .failures: "waiting after failures"
        case .localShortage: "\(QueuedReason.localShortage)"
        }
    }
}
