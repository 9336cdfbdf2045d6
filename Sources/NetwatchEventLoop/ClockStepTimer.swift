internal import CNetwatchLinux
internal import Glibc

/// A timer that never expires, and whose descriptor becomes readable when `CLOCK_REALTIME` is set, and when
/// the machine resumes, which sets it too.
package final class ClockStepTimer: Sendable {
    private let timer: FileDescriptor

    /// Makes and arms it.
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

    /// Takes the news off the descriptor (`read(2)` fails with `ECANCELED`) and waits for the next.
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
        // Set while it was being armed, says ECANCELED; it is armed all the same.
        if result != 0, errno != ECANCELED { throw SystemError(call: "timerfd_settime", errno: errno) }
    }
}
