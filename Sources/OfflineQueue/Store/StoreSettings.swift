/// The limits and retention periods of a store.
package struct StoreSettings: Hashable, Sendable {
    package var limits = QueueLimits()
    /// The maximum time until a request is due, unless the caller scheduled it for later. It bounds the delay that a
    /// wrong clock can cause. Default 15 minutes.
    package var longestDelay: Duration = Backoff.defaultCap
    /// The maximum time for which a lane is closed.
    package var longestClosure: Duration = RetryAfter.longest
    package var retention = Retention()

    /// How long finished requests are kept.
    package struct Retention: Hashable, Sendable {
        /// For delivered, cancelled and superseded requests. Default 1 day.
        package var done: Duration = .seconds(86_400)
        /// The maximum number of requests in each of these states.
        package var doneCount = 10_000
        /// For requests that were given up, with their bodies. Default 7 days.
        package var dead: Duration = .seconds(7 * 86_400)
        /// The maximum total size of finished requests in bytes, including the bodies of dead ones and responses. The
        /// oldest are removed first.
        package var bytes: Int64 = 256 << 20

        package init() {}
    }

    package init() {}
}
