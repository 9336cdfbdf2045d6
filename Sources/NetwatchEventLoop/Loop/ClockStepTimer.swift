internal import CNetwatchLinux
internal import Glibc

/// A detector of steps of the wall clock. Its descriptor becomes readable when `CLOCK_REALTIME` is set, and when the
/// machine resumes from a suspension, which also sets that clock.
///
/// It is a timer that never expires (`TFD_TIMER_CANCEL_ON_SET` of timerfd_create(2)).
package final class ClockStepTimer: Sendable {
    private let timer: FileDescriptor

    /// Creates and arms the timer.
    ///
    /// - Throws: ``SystemError`` of `timerfd_create` (`EMFILE`) or `timerfd_settime`.
    package init() throws(SystemError) {
        let flags = O_CLOEXEC | O_NONBLOCK
        let descriptor = try systemCall("timerfd_create") { timerfd_create(CLOCK_REALTIME, flags) }
        timer = FileDescriptor(owning: descriptor)
        try arm()
    }

    package var descriptor: CInt {
        timer.rawValue
    }

    /// Clears the reported event and arms the timer for the next one. To clear the event, this method reads the timer,
    /// which fails with `ECANCELED`.
    ///
    /// - Throws: ``SystemError`` of `timerfd_settime`.
    package func rearm() throws(SystemError) {
        var expirations: UInt64 = 0
        _ = read(timer.rawValue, &expirations, MemoryLayout.size(ofValue: expirations))
        try arm()
    }

    private func arm() throws(SystemError) {
        var never = netwatch_itimerspec()
        never.seconds = .max
        let flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
        let result = timerfd_settime(timer.rawValue, flags, &never, nil)
        // ECANCELED means that the clock was set during this call. The timer is armed anyway.
        if result != 0, errno != ECANCELED { throw SystemError(call: "timerfd_settime", errno: errno) }
    }
}
