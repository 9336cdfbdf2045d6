package import NetwatchEventLoop
package import NetwatchNetlink

/// Faults that tests inject into a monitor, to prove that the tests would find such faults.
package struct MonitorFaults: Sendable {
    /// The classes of notifications that the monitor does not receive.
    package var ignoredClasses: Set<NetlinkEvent.Class> = []
    /// Whether lookups right after a notification have no effect. This simulates a kernel that announces each change
    /// before it makes the change. The confirmation, which follows later, is not affected.
    package var answersLate = false
    /// The address families for which routes are looked up without the source address that the kernel chooses.
    package var ignoredSources: Set<IPAddress.Family> = []
    /// A closure that is called before `connect(2)` for an IPv6 address, and returns the error with which this fails.
    package var sourceFailure: (@Sendable () -> SystemError?)?
    /// Whether the monitor looks up all addresses without ports.
    package var ignoresPorts = false
    /// Whether the monitor looks up no address because of the lifetime of a route.
    package var ignoresLifetimes = false
    /// A closure that is called for each batch of notifications, and returns the batch to process instead.
    package var interceptor: (@Sendable (EventSocket.Batch) -> EventSocket.Batch)?

    package init() {}

    var receivedClasses: Set<NetlinkEvent.Class> {
        Set(NetlinkEvent.Class.allCases).subtracting(ignoredClasses)
    }
}
