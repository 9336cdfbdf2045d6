internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

/// One thread blocked in `epoll_wait(2)` that runs everything handed to it, one thing at a time.
///
/// It is the serial executor of the actor that owns a thread-bound C library (libnl, a curl multi
/// handle): the actor's jobs, its descriptors' events and its timers all run on this thread, so the
/// handles need no lock. An instance owns its thread; when the instance goes away the thread finishes
/// what was enqueued and ends.
package final class EventLoop: SerialExecutor {
    private let core = EventLoopCore()
    private let namespace: SocketNamespace?
    private let label: String
    private let isStarting = Mutex(())
    private let isStarted = Atomic(false)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - label: The thread's name, as `ps -L` and debuggers show it. Cut to 15 bytes by the kernel.
    ///   - networkNamespace: A path to a network namespace (`/run/netns/NAME`, `/proc/PID/ns/net`) for
    ///     ``inNetworkNamespace(_:)``. `nil`, the default, is the namespace of the calling thread.
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

    /// Makes a loop without a thread. Work that it is given waits for a ``start()`` that succeeds.
    package init(startingLater label: String) {
        namespace = nil
        self.label = label
    }

    /// Opens the descriptors and starts the thread, unless that was done. After a failure it may be called again.
    ///
    /// - Throws: ``SystemError`` of `epoll_create1`, `eventfd`, `timerfd_create` or `pthread_create`;
    ///   ``SystemError/forked`` in a child of fork(2), where the thread is missing.
    package func start() throws(SystemError) {
        try checkProcess()
        guard !isStarted.load(ordering: .acquiring) else { return }
        let result = isStarting.withLock { _ -> Result<Void, SystemError> in
            guard !isStarted.load(ordering: .relaxed) else { return .success(()) }
            return Result { () throws(SystemError) in
                try DispatchDescriptors.reserve()
                try core.open()
                core.setExecutor(asUnownedSerialExecutor())
                try EventLoopThread.start(core: core, label: label)
                isStarted.store(true, ordering: .releasing)
            }
        }
        try result.get()
    }

    /// Whether the thread runs in this process.
    package var isRunning: Bool {
        isStarted.load(ordering: .acquiring) && !ForkedChild.isCurrent
    }

    /// - Throws: ``SystemError/forked`` in a child of fork(2).
    package func checkProcess() throws(SystemError) {
        if ForkedChild.isCurrent { throw .forked }
    }

    deinit {
        core.stop()
    }

    /// Runs an actor's job on the thread. Callable from any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        core.enqueue(.job(UnownedJob(job)))
    }

    /// Runs a closure on the thread after everything enqueued before it. Callable from any thread.
    package func execute(_ body: @escaping @Sendable () -> Void) {
        core.enqueue(.closure(body))
    }

    /// Runs a closure on the thread and returns its result, at once when called there.
    ///
    /// The caller waits as it would for a lock that is held briefly: nothing that runs on a loop may block.
    package func runAndWait<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        if isCurrent { return body() }
        let answer = Answer<Result>()
        execute { answer.give(body()) }
        return answer.wait()
    }

    /// Opens a socket, or several, in the loop's network namespace. The calling thread is inside only while `body`
    /// runs; see ``SocketNamespace``.
    ///
    /// - Throws: ``SystemError`` of `setns`, and what `body` throws.
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
    /// What a descriptor is watched for.
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        package static let read = Interest(rawValue: EPOLLIN)
        package static let write = Interest(rawValue: EPOLLOUT)
    }

    /// What `epoll_wait(2)` reported of a descriptor.
    package struct Readiness: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        package static let readable = Readiness(rawValue: EPOLLIN)
        package static let writable = Readiness(rawValue: EPOLLOUT)
        /// An error is pending on the descriptor. Reported whether asked for or not.
        package static let error = Readiness(rawValue: EPOLLERR)
        /// The peer closed. Reported whether asked for or not.
        package static let hangUp = Readiness(rawValue: EPOLLHUP)
    }

    /// Names one watch of one descriptor, so that an event of a watch that ended is never delivered to a
    /// later watch of a descriptor with the same number.
    package struct Registration: Hashable, Sendable {
        let token: UInt64
        let descriptor: CInt
    }

    /// Watches a descriptor, level-triggered. The handler runs on the loop's thread.
    ///
    /// The caller keeps the descriptor open until ``unregister(_:)``.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package func register(
        _ descriptor: CInt,
        for interest: Interest,
        handler: @escaping @Sendable (Readiness) -> Void
    ) throws(SystemError) -> Registration {
        try core.register(descriptor, for: interest, handler: handler)
    }

    /// Changes what a descriptor is watched for.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package func update(_ registration: Registration, to interest: Interest) throws(SystemError) {
        try core.update(registration, to: interest)
    }

    /// Ends a watch. On the loop's thread its handler does not run again afterwards.
    package func unregister(_ registration: Registration) {
        core.unregister(registration)
    }
}

// MARK: - Timers

extension EventLoop {
    /// Names one scheduled timer.
    package struct Timer: Hashable, Sendable {
        let id: UInt64
        package let deadline: ContinuousClock.Instant
    }

    /// Runs a closure on the loop's thread once a moment has come. Callable from any thread.
    ///
    /// `ContinuousClock` is `CLOCK_BOOTTIME` on Linux: time spent suspended counts, and a timer that came
    /// due during it fires on resume.
    @discardableResult
    package func schedule(
        at deadline: ContinuousClock.Instant,
        _ body: @escaping @Sendable () -> Void
    ) -> Timer {
        core.schedule(at: deadline, body)
    }

    /// Takes a timer back. On the loop's thread its closure does not run afterwards.
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
