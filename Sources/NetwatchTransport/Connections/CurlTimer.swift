internal import NetwatchEventLoop

/// The timeout that libcurl requests, as a timer of the event loop. It is confined to the loop's thread.
///
/// libcurl changes its deadline several times per transfer. To save calls, the timer of the loop is replaced only if it
/// would fire too late. A timer that fires too early is set again.
struct CurlTimer {
    private let loop: EventLoop
    private let onTimeout: @Sendable () -> Void
    /// The time at which libcurl wants to check its timeouts; `nil` if it waits for none.
    private var deadline: BootInstant?
    /// The timer for the deadline, or for an earlier deadline that libcurl has replaced since.
    private var timer: EventLoop.Timer?
    /// Whether a call of `onTimeout` is scheduled because libcurl wants to run immediately.
    private var isDue = false

    /// Creates a timer that is not set.
    ///
    /// - Parameter onTimeout: Called on the loop. Must call ``fire()``.
    init(_ loop: EventLoop, onTimeout: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.onTimeout = onTimeout
    }

    /// Sets the timeout; a negative value removes it. Called from libcurl's timer callback, which must not call
    /// libcurl. Therefore, even for a timeout of 0, the loop calls `onTimeout` later.
    mutating func set(milliseconds: Int) {
        guard milliseconds >= 0 else { return deadline = nil }
        if milliseconds > 0 {
            let deadline = BootInstant.now + .milliseconds(milliseconds)
            self.deadline = deadline
            schedule(deadline)
        } else {
            deadline = .now
            if !isDue { loop.execute(onTimeout) }
            isDue = true
        }
    }

    /// Returns whether libcurl must check its timeouts now. If not, this function sets the timer again if there is a
    /// deadline.
    mutating func fire() -> Bool {
        let now = BootInstant.now
        if let timer, timer.deadline <= now { self.timer = nil }
        isDue = false
        guard let deadline else { return false }
        guard deadline <= now else {
            schedule(deadline)
            return false
        }
        self.deadline = nil
        return true
    }

    mutating func cancel() {
        timer.map(loop.cancel)
        (timer, deadline) = (nil, nil)
    }

    private mutating func schedule(_ deadline: BootInstant) {
        if let timer {
            guard deadline < timer.deadline else { return }
            loop.cancel(timer)
        }
        timer = loop.schedule(at: deadline, onTimeout)
    }
}
