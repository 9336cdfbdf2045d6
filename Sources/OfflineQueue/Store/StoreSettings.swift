/// What a store allows, and how long it remembers.
package struct StoreSettings: Hashable, Sendable {
    package var limits = QueueLimits()
    /// No request is due later than this from now, unless somebody asked for it: a wrong clock delays nothing
    /// for long.
    package var longestDelay: Duration = .seconds(900)
    /// No lane is closed for longer.
    package var longestClosure: Duration = RetryAfter.longest
    package var retention = Retention()

    /// How long requests are remembered that are over.
    package struct Retention: Hashable, Sendable {
        /// Delivered, dropped and superseded ones.
        package var done: Duration = .seconds(86_400)
        /// And no more of them than this.
        package var doneCount = 10_000
        /// Those that were given up, with their bodies.
        package var dead: Duration = .seconds(7 * 86_400)
        /// What is kept of requests, the bodies of dead ones included, and answers may take in all; the oldest go first.
        package var bytes: Int64 = 256 << 20

        package init() {}
    }

    package init() {}
}
