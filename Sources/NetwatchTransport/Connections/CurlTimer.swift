internal import NetwatchEventLoop

/// The timeout that libcurl asks for, as a timer of the loop.
///
/// libcurl changes its deadline several times per transfer, so the timer of the loop is replaced only if it would fire
/// too late. It is confined to the loop's thread.
struct CurlTimer {
    private let loop: EventLoop
    private let onTimeout: @Sendable () -> Void
    /// When libcurl wants to check its timeouts.
    private var deadline: ContinuousClock.Instant?
    /// The timer for the deadline, or for an earlier deadline that is no longer needed.
    private var timer: EventLoop.Timer?
    /// Whether libcurl wants to run immediately and the call is already scheduled.
    private var isDue = false

    /// - Parameter onTimeout: Called on the loop. Must call ``fire()``.
    init(_ loop: EventLoop, onTimeout: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.onTimeout = onTimeout
    }

    /// Sets the timeout; a negative value removes it. libcurl must not be called from its timer callback, so a timeout
    /// of 0 is scheduled on the loop too.
    mutating func set(milliseconds: Int) {
        guard milliseconds >= 0 else { return deadline = nil }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        self.deadline = deadline
        if milliseconds > 0 {
            schedule(deadline)
        } else if !isDue {
            isDue = true
            loop.execute(onTimeout)
        }
    }

    /// Returns whether libcurl must check its timeouts now. Otherwise the timer is set again, if it is needed.
    mutating func fire() -> Bool {
        if let timer, timer.deadline <= .now { self.timer = nil }
        isDue = false
        guard let deadline else { return false }
        guard deadline <= .now else {
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

    private mutating func schedule(_ deadline: ContinuousClock.Instant) {
        if let timer {
            guard deadline < timer.deadline else { return }
            loop.cancel(timer)
        }
        timer = loop.schedule(at: deadline, onTimeout)
    }
}
