public import Foundation

/// A lane in which nothing is sent before a time.
public struct LaneClosure: Hashable, Sendable {
    /// Why a lane is closed.
    public enum Cause: Hashable, Sendable {
        /// The server asked for it (`Retry-After`). It outlives a restart.
        case retryAfter
        /// Attempts failed. It is forgotten with the lane's last request, at a restart, and when the network changes.
        case failures
        /// This machine was short of descriptors, memory, threads or ports.
        case localShortage
    }

    /// When the lane opens, by the wall clock. ``OfflineQueue/flush()`` opens it sooner.
    public let until: Date
    /// The status of the answer with `Retry-After`: 429 or 503. `nil` for other causes, and when an older version
    /// noted it.
    public let status: Int?
    /// Why it is closed.
    public let cause: Cause
}

extension LaneClosure: CustomStringConvertible {
    /// The closure in words for a person, without its end.
    public var description: String {
        switch cause {
        case .retryAfter: "lane closed by Retry-After" + (status.map { " of HTTP \($0)" } ?? "")
        case .failures: "waiting after failures"
        case .localShortage: "\(QueuedReason.localShortage)"
        }
    }
}
