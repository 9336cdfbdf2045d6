internal import Glibc

/// A counting semaphore whose timeouts use the monotonic clock. Its functions may be called on any thread.
///
/// On Linux, the timeouts of `DispatchSemaphore` use the clock of the calendar time. If that clock is set back during a
/// wait, the wait lasts longer by the same amount.
package final class MonotonicSemaphore: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Protected by `mutex`.
    private var count = 0

    /// Creates a semaphore with the count 0.
    package init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Increments the count, and ends one wait if there are any.
    package func signal() {
        pthread_mutex_lock(mutex)
        count += 1
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Waits until the count is positive, and decrements it.
    ///
    /// - Parameter timeout: The maximum duration of the wait. Default `nil`: no maximum.
    /// - Returns: `false` if the timeout ended the wait. The count is then unchanged.
    @discardableResult
    package func wait(for timeout: Duration? = nil) -> Bool {
        var deadline = timeout.map(Self.time)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while count == 0 {
            let result =
                deadline == nil
                ? pthread_cond_wait(condition, mutex) : pthread_cond_timedwait(condition, mutex, &deadline!)
            if result != 0 { return false }
        }
        count -= 1
        return true
    }

    /// Returns the monotonic time after a duration.
    private static func time(after duration: Duration) -> timespec {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let (seconds, attoseconds) = (.seconds(now.tv_sec) + .nanoseconds(now.tv_nsec) + duration).components
        return timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    }
}
