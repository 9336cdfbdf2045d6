package import NetwatchNetlink

/// Faults that tests inject, to show that they would be noticed.
package struct MonitorFaults: Sendable {
    /// The classes of notifications that the monitor does not receive.
    package var ignoredClasses: Set<NetlinkEvent.Class> = []
    /// Whether lookups after a notification return the old answer, as when the kernel announces a change before
    /// making it.
    package var answersLate = false
    /// Called for each batch of notifications. Its result is used instead of the batch.
    package var interceptor: (@Sendable (EventSocket.Batch) -> EventSocket.Batch)?

    package init() {}

    var receivedClasses: Set<NetlinkEvent.Class> {
        Set(NetlinkEvent.Class.allCases).subtracting(ignoredClasses)
    }
}
