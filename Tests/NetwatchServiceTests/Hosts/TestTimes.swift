internal import NetwatchEventLoop
internal import NetwatchService

extension HostTracker.Moment {
    /// Creates a time on a machine that was not suspended since its boot.
    init(wall: Int64, running: Duration) {
        self.init(wall: wall, running: running, boot: BootInstant(nanoseconds: 0) + running)
    }

    /// Returns a time on a machine that booted in 1970 and whose wall clock was set once.
    ///
    /// - Parameters:
    ///   - time: Milliseconds since 1970.
    ///   - step: By how much the wall clock was set, in milliseconds. Default: 0.
    static func at(_ time: Int64, step: Int64 = 0) -> HostTracker.Moment {
        HostTracker.Moment(wall: time + step, running: .milliseconds(time))
    }
}

extension HostTracker.Start {
    /// Returns a time on the machine of ``HostTracker/Moment/at(_:step:)``, before its wall clock was set.
    static func at(_ time: Int64) -> HostTracker.Start {
        HostTracker.Start(.at(time))
    }
}
