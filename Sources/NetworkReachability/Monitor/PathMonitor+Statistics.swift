internal import NetwatchNetlink

extension PathMonitor {
    /// Counters of a monitor since its creation.
    package struct Statistics: Hashable, Sendable {
        package var recomputations = 0
        /// The number of addresses looked up.
        package var lookups = 0
        /// The number of name lookups started.
        package var nameLookups = 0
        package var overruns = 0
        package var malformed = 0
        package var foreign = 0

        mutating func add(_ batch: EventSocket.Batch) {
            if batch.isOverrun { overruns += 1 }
            malformed += batch.malformed
            foreign += batch.foreign
        }
    }
}
