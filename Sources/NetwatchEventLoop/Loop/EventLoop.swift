internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

/// A thread that blocks in `epoll_wait(2)` and runs all its work serially.
///
/// It is the serial executor of actors that own a thread-bound C library, such as libnl or a curl multi handle. The
/// actor's jobs, its descriptor events and its timers all run on this thread, so the handles need no lock. An
/// instance owns its thread. When the instance is released, the thread finishes the enqueued work and exits.
package final class EventLoop: SerialExecutor {
    private let core = EventLoopCore()
    private let namespace: SocketNamespace?
    private let label: String
    private let startup = RetriedOnce()

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - label: The thread's name, as shown by `ps -L` and debuggers. The kernel truncates it to 15 bytes.
    ///   - networkNamespace: The path of a network namespace (`/run/netns/NAME`, `/proc/PID/ns/net`) for
    ///     ``inNetworkNamespace(_:)``. Default `nil`: the namespace of the calling thread.
    /// - Throws: ``SystemError`` of `open`, `setns` (`EPERM` without `CAP_SYS_ADMIN` over the namespace),
    ///   `epoll_create1`, `eventfd`, `timerfd_create` or `pthread_create`.
    package init(label: String, networkNamespace: String? = nil) throws(SystemError) {
        if let networkNamespace {
            namespace = try SocketNamespace(networkNamespace)
        } else {
            namespace = nil
        }
        self.label = label
        try start()
    }

    /// Creates a loop without a thread. Enqueued work waits until ``start()`` succeeds.
    package init(startingLater label: String) {
        namespace = nil
        self.label = label
    }

    /// Opens the descriptors and starts the thread, unless already done. Can be called again after a failure.
    ///
    /// - Throws: ``SystemError`` of `epoll_create1`, `eventfd`, `timerfd_create` or `pthread_create`;
    ///   ``SystemError/forked`` in a child of fork(2), which does not have the thread.
    package func start() throws(SystemError) {
        try checkProcess()
        try startup.run { () throws(SystemError) in
            try DispatchDescriptors.reserve()
            try core.open()
            core.setExecutor(asUnownedSerialExecutor())
            try EventLoopThread.start(core: core, label: label)
        }
    }

    /// Whether the thread is running in this process.
    package var isRunning: Bool {
        startup.hasSucceeded && !ForkedChild.isCurrent
    }

    /// Throws an error if the process was forked after the loop was created.
    ///
    /// - Throws: ``SystemError/forked`` in a child of fork(2).
    package func checkProcess() throws(SystemError) {
        if ForkedChild.isCurrent { throw .forked }
    }

    deinit {
        core.stop()
    }

    /// Runs an actor's job on the thread. Can be called from any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        core.enqueue(.job(UnownedJob(job)))
    }

    /// Runs a closure on the thread after everything that was enqueued before. Can be called from any thread.
    package func execute(_ body: @escaping @Sendable () -> Void) {
        core.enqueue(.closure(body))
    }

    /// Runs a closure on the thread and returns its result. On the loop's own thread, it runs immediately.
    ///
    /// The caller blocks only briefly, as for a lock, because work on a loop must not block.
    package func runAndWait<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        if isCurrent { return body() }
        let answer = Answer<Result>()
        execute { answer.give(body()) }
        return answer.wait()
    }

    /// Opens sockets in the loop's network namespace. The calling thread is in the namespace only while `body` runs;
    /// see ``SocketNamespace``.
    ///
    /// - Throws: ``SystemError`` of `setns`, and the errors of `body`.
    package func inNetworkNamespace<Result: ~Copyable>(
        _ body: () throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        guard let namespace else { return try body() }
        return try namespace.run(body)
    }

    /// Whether the caller runs on this loop's thread.
    package var isCurrent: Bool {
        EventLoopThread.current === core
    }

    package func checkIsolated() {
        precondition(isCurrent, "not on the event loop's thread")
    }

    package func isSameExclusiveExecutionContext(other: EventLoop) -> Bool {
        self === other
    }
}

// MARK: - Descriptors

extension EventLoop {
    /// The events for which a descriptor is watched.
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        package static let read = Interest(rawValue: EPOLLIN)
        package static let write = Interest(rawValue: EPOLLOUT)
    }

    /// The events that `epoll_wait(2)` reported for a descriptor.
    package struct Readiness: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        package static let readable = Readiness(rawValue: EPOLLIN)
        package static let writable = Readiness(rawValue: EPOLLOUT)
        /// An error is pending on the descriptor. Always reported.
        package static let error = Readiness(rawValue: EPOLLERR)
        /// The peer closed the connection. Always reported.
        package static let hangUp = Readiness(rawValue: EPOLLHUP)
    }

    /// Identifies one watch of one descriptor. An event of a removed watch is therefore never delivered to a later
    /// watch with the same descriptor number.
    package struct Registration: Hashable, Sendable {
        let token: UInt64
        let descriptor: CInt
    }

    /// Watches a descriptor, level-triggered. The handler runs on the loop's thread.
    ///
    /// The caller must keep the descriptor open until ``unregister(_:)``.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package func register(
        _ descriptor: CInt,
        for interest: Interest,
        handler: @escaping @Sendable (Readiness) -> Void
    ) throws(SystemError) -> Registration {
        try core.register(descriptor, for: interest, handler: handler)
    }

    /// Changes the events for which a descriptor is watched.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package func update(_ registration: Registration, to interest: Interest) throws(SystemError) {
        try core.update(registration, to: interest)
    }

    /// Removes a watch. If called on the loop's thread, the handler is not called again after this method returns.
    package func unregister(_ registration: Registration) {
        core.unregister(registration)
    }
}

// MARK: - Timers

extension EventLoop {
    /// Identifies a scheduled timer.
    package struct Timer: Hashable, Sendable {
        let id: UInt64
        package let deadline: ContinuousClock.Instant
    }

    /// Runs a closure on the loop's thread at a deadline. Can be called from any thread.
    ///
    /// `ContinuousClock` is `CLOCK_BOOTTIME` on Linux: suspended time counts, and a timer that expired during a
    /// suspension fires on resume.
    @discardableResult
    package func schedule(
        at deadline: ContinuousClock.Instant,
        _ body: @escaping @Sendable () -> Void
    ) -> Timer {
        core.schedule(at: deadline, body)
    }

    /// Cancels a timer. If called on the loop's thread, the closure is not called after this method returns.
    package func cancel(_ timer: Timer) {
        core.cancel(timer)
    }
}

/// A value that one thread waits for.
private final class Answer<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let isGiven = DispatchSemaphore(value: 0)

    func give(_ value: Value) {
        self.value.withLock { $0 = value }
        isGiven.signal()
    }

    func wait() -> Value {
        isGiven.wait()
        return value.withLock { $0! }
    }
}
