internal import CNetwatchLinux
internal import Glibc
internal import Synchronization

/// Starts a detached thread that runs `body` and exits. The thread blocks all signals, so that the program's own
/// threads handle them.
///
/// - Parameter name: The thread's name, as shown by `ps -L` and debuggers. The kernel truncates it to 15 bytes.
/// - Parameter stackSize: The size of the stack in bytes, at least 16 KiB. Default `nil`: the size that the system
///   chooses, usually 8 MiB.
/// - Throws: ``SystemError`` of `pthread_create`, with `EAGAIN` if the process may not have more threads.
package func startDetachedThread(
    named name: String,
    stackSize: Int? = nil,
    _ body: @escaping @Sendable () -> Void
) throws(SystemError) {
    ForkedChild.watch()
    let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
    let result = pthread_create(
        &thread,
        &attributes,
        { context in
            Unmanaged<ThreadStart>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        },
        start.toOpaque()
    )
    guard result == 0 else {
        start.release()
        throw SystemError(call: "pthread_create", errno: result)
    }
    pthread_detach(thread)
}

private final class ThreadStart {
    private let name: String
    private let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    func run() {
        netwatch_set_thread_name(name)
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
        body()
    }
}

/// The state of a process that is a child of fork(2) and whose parent used netwatch. Such a child cannot use netwatch.
///
/// The child has the memory of its parent's loops, pools and locks, but only one thread. The threads that would work
/// for it do not exist, so a caller would wait for ever. Therefore every operation that needs a thread throws
/// ``SystemError/forked``. This also applies to objects that the child creates, because they use parts that the whole
/// process shares.
///
/// Two kinds of processes are not affected: a child whose parent had not used netwatch before the fork, and a process
/// that has called exec(2).
package enum ForkedChild {
    private static let flag = Atomic(false)

    private static let isWatching: Bool = {
        // Initializes the flag before a fork. If a fork interrupted its initialization on another thread, the child
        // would wait for that thread for ever.
        _ = flag.load(ordering: .relaxed)
        return pthread_atfork(nil, nil, { ForkedChild.flag.store(true, ordering: .relaxed) }) == 0
    }()

    /// Records that this process uses netwatch. Must be called before a thread is started.
    package static func watch() { _ = isWatching }

    /// Whether netwatch cannot be used in this process.
    package static var isCurrent: Bool { flag.load(ordering: .relaxed) }
}

extension SystemError {
    /// The error for using netwatch in a child of fork(2), which does not have the threads of its parent.
    package static let forked = SystemError(call: "use netwatch in a child of fork(2)", errno: ENOTSUP)
}

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
