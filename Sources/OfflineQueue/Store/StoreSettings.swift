/// The limits, maximum delays and retention periods of a store.
package struct StoreSettings: Hashable, Sendable {
    package var limits = QueueLimits()
    /// The maximum time until a request is due, unless its caller scheduled it for later. It limits the delay that a
    /// wrong clock can cause. Default 15 minutes.
    package var longestDelay: Duration = Backoff.defaultCap
    /// The maximum time for which a server can close a lane. Default 24 hours.
    package var longestClosure: Duration = RetryAfter.longest
    package var retention = Retention()
    /// The waiting time that outweighs one level of priority. A request that has been due for this time goes before
    /// younger requests of the next higher priority. Default 10 minutes.
    package var ageingStep: Duration = .seconds(600)
    /// The path of the file with the encryption keys; `nil` for none.
    package var encryptionKeyFile: String?

    /// How long, and how many, finished requests are kept.
    package struct Retention: Hashable, Sendable {
        /// How long delivered, cancelled and superseded requests are kept. Default 1 day.
        package var done: Duration = .seconds(86_400)
        /// The maximum number of delivered requests, of cancelled requests and of superseded requests of each
        /// submitter. Requests without a submitter count together. Default 10,000 of each.
        package var doneCount = 10_000
        /// How long dead requests are kept, with their bodies. Default 7 days.
        package var dead: Duration = .seconds(7 * 86_400)
        /// The maximum total size of finished requests in bytes, including recorded responses and the bodies of dead
        /// requests. Beyond it, the oldest requests of the user whose requests have most bytes are removed. Default
        /// 256 MiB.
        package var bytes: Int64 = 256 << 20

        package init() {}
    }

    package init() {}
}
