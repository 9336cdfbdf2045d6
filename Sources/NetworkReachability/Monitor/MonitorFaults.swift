package import NetwatchNetlink

/// Ways to break a monitor, for tests that show that such a break would be noticed.
package struct MonitorFaults: Sendable {
    /// Announcements that the monitor is deaf to.
    package var ignoredClasses: Set<NetlinkEvent.Class> = []
    /// Lookups after an announcement answer what they did before it, as when the kernel announces a change
    /// before it makes it.
    package var answersLate = false
    /// Called for each batch of announcements, whose result is taken instead.
    package var interceptor: (@Sendable (EventSocket.Batch) -> EventSocket.Batch)?

    package init() {}

    var heardClasses: Set<NetlinkEvent.Class> {
        Set(NetlinkEvent.Class.allCases).subtracting(ignoredClasses)
    }
}
