internal import NetwatchNetlink

extension PathMonitor {
    /// The counters of a monitor since its creation.
    package struct Statistics: Hashable, Sendable {
        package var recomputations = 0
        /// The number of addresses that were looked up in the kernel.
        package var lookups = 0
        /// The number of name lookups that were started.
        package var nameLookups = 0
        /// The number of batches of notifications during which the receive buffer overran.
        package var overruns = 0
        /// The number of kernel messages that could not be parsed.
        package var malformed = 0
        /// The number of messages that were ignored because the kernel did not send them.
        package var foreign = 0

        mutating func add(_ batch: EventSocket.Batch) {
            if batch.isOverrun { overruns += 1 }
            malformed += batch.malformed
            foreign += batch.foreign
        }
    }
}
