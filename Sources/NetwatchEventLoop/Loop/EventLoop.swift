internal import CNetwatchLinux
internal import Dispatch
internal import Glibc

/// A thread that waits in `epoll_wait(2)` and runs all its work serially.
///
/// It is the serial executor of actors that own a thread-bound C library, such as libnl or a multi handle of libcurl.
/// The actor's jobs, its descriptor events and its timers all run on this thread, so the library's handles need no
/// lock.
///
/// A loop owns its thread. When the loop is released, the thread finishes the enqueued work and exits.
package final class EventLoop: SerialExecutor {
    private let core = EventLoopCore()
    private let namespace: SocketNamespace?
    private let label: String
    private let startup = RetriedOnce()

    /// Creates a loop and starts its thread.
    ///
    /// - Parameters:
    ///   - label: The thread's name, as shown by `ps -L` and debuggers. The kernel truncates it to 15 bytes.
    ///   - networkNamespace: The path of a network namespace for ``inNetworkNamespace(_:)``, such as `/run/netns/NAME`
    ///     or `/proc/PID/ns/net`. Default `nil`: the namespace of the calling thread.
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

    /// Opens the descriptors and starts the thread. Has no effect if that was done before. After a failure, the next
    /// call tries again.
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

    /// Throws an error in a child of fork(2), where the loop cannot be used.
    ///
    /// - Throws: ``SystemError/forked`` if the parent process used netwatch before the fork.
    package func checkProcess() throws(SystemError) {
        if ForkedChild.isCurrent { throw .forked }
    }

    deinit {
        core.stop()
    }

    /// Runs an actor's job on the thread. May be called on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        core.enqueue(.job(UnownedJob(job)))
    }

    /// Runs a closure on the thread, after all work that was enqueued before. May be called on any thread.
    package func execute(_ body: @escaping @Sendable () -> Void) {
        core.enqueue(.closure(body))
    }

    /// Calls a closure that is isolated to an actor of this loop, after all work that was enqueued before. May be called
    /// on any thread.
    package func execute<Isolation: Actor>(
        on actor: Isolation,
        _ body: @escaping @Sendable (isolated Isolation) -> Void
    ) {
        core.enqueue(.call(IsolatedCall(actor, body)))
    }

    /// Runs a closure on the thread, waits for it and returns its result. On the loop's own thread, the closure runs
    /// immediately.
    ///
    /// The caller is blocked only briefly, as by a lock, because work on a loop must not block.
    package func runAndWait<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        if isCurrent { return body() }
        let answer = Answer<Result>()
        execute { answer.give(body()) }
        return answer.wait()
    }

    /// Runs `body`, which opens sockets, in the loop's network namespace. The calling thread is in the namespace only
    /// while `body` runs; see ``SocketNamespace``.
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
        /// The descriptor has a pending error. Reported for every interest.
        package static let error = Readiness(rawValue: EPOLLERR)
        /// The connection is closed in both directions. Reported for every interest.
        package static let hangUp = Readiness(rawValue: EPOLLHUP)
    }

    /// The identity of one watch of one descriptor. A later watch of the same descriptor number has another identity,
    /// so it never receives events of the earlier watch.
    package struct Registration: Hashable, Sendable {
        let token: UInt64
        let descriptor: CInt
    }

    /// Watches a descriptor, level-triggered. The caller must keep the descriptor open until ``unregister(_:)``.
    ///
    /// - Parameter handler: Called on the loop's thread when the descriptor is ready.
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

    /// Removes a watch. After a call on the loop's thread, the handler is not called again.
    package func unregister(_ registration: Registration) {
        core.unregister(registration)
    }
}

// MARK: - Timers

extension EventLoop {
    /// The identity of a scheduled timer.
    package struct Timer: Hashable, Sendable {
        let id: UInt64
        package let deadline: BootInstant
        /// Whether the timer is one of ``TimeLimits``.
        let isLimit: Bool
    }

    /// Runs a closure on the loop's thread at a deadline. May be called on any thread.
    ///
    /// If descriptors are ready at the same time, their handlers are called first.
    ///
    /// The time of a suspension counts (`CLOCK_BOOTTIME`). A timer that expires during a suspension fires when the
    /// machine resumes.
    @discardableResult
    package func schedule(
        at deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> Timer {
        core.schedule(at: deadline, body)
    }

    /// Runs a closure on the loop's thread when a time limit has passed, such as the timeout of a response. May be
    /// called on any thread.
    ///
    /// If the thread did not run when the limit passed, the closure runs up to a second later; see ``TimeLimits``. The
    /// loop first reads what has arrived meanwhile.
    package func scheduleLimit(
        _ limit: Duration,
        _ body: @escaping @Sendable () -> Void
    ) -> Timer {
        core.scheduleLimit(at: .now + max(.zero, limit), body)
    }

    /// Cancels a timer. After a call on the loop's thread, the closure is not called.
    package func cancel(_ timer: Timer) {
        core.cancel(timer)
    }
}

/// A result for which one thread waits.
private final class Answer<Value: Sendable>: Sendable {
    private let value = Lock<Value?>(nil)
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

/// The thread of an ``EventLoop``. It finds its loop through thread-specific data (`pthread_setspecific(3)`).
enum EventLoopThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let result = pthread_key_create(&key, nil)
        precondition(result == 0, "pthread_key_create: \(errnoDescription(result))")
        return key
    }()

    /// The core of the loop on whose thread the caller runs; `nil` on any other thread.
    static var current: EventLoopCore? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        return Unmanaged<EventLoopCore>.fromOpaque(pointer).takeUnretainedValue()
    }

    static func start(core: EventLoopCore, label: String) throws(SystemError) {
        try startDetachedThread(named: label) {
            pthread_setspecific(key, Unmanaged.passUnretained(core).toOpaque())
            core.run()
        }
    }
}

/// A call of a closure that is isolated to an actor. The actor's executor makes the call.
///
/// `assumeIsolated` does the same, but allocates two closure contexts for each call and looks up the current executor. A
/// call that an executor makes for its own actor needs neither.
package struct IsolatedCall: Sendable {
    private let actor: any Actor
    private let body: @Sendable (AnyObject) -> Void

    package init<Isolation: Actor>(
        _ actor: Isolation,
        _ body: @escaping @Sendable (isolated Isolation) -> Void
    ) {
        self.actor = actor
        // Functions with an isolated parameter have the calling convention of other functions, which `assumeIsolated`
        // relies on as well, and a reference to an actor is passed like a reference to any object. The structures
        // prevent the conversion of the closure to its most general form, which would allocate.
        self.body = unsafeBitCast(Isolated(body: body), to: Erased.self).body
    }

    /// Calls the closure. Must be called on the actor's executor, which is checked in debug builds.
    package func callAsFunction() {
        assert(isOnExecutor)
        body(actor)
    }

    /// Ends the process if the caller does not run on the actor's executor. `assertIsolated` would also look up the
    /// executor in release builds.
    private var isOnExecutor: Bool {
        actor.preconditionIsolated()
        return true
    }
}

private struct Isolated<Isolation: Actor> {
    let body: @Sendable (isolated Isolation) -> Void
}

private struct Erased {
    let body: @Sendable (AnyObject) -> Void
}
