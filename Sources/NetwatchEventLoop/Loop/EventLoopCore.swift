internal import CNetwatchLinux
internal import Glibc
internal import Synchronization

/// The state that an ``EventLoop`` and its thread share. It exists until both have ended.
final class EventLoopCore: Sendable {
    enum Work: Sendable {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
        case call(IsolatedCall)
    }

    fileprivate struct State {
        var executor: UnownedSerialExecutor?
        var work: [Work] = []
        var handlers: [UInt64: @Sendable (EventLoop.Readiness) -> Void] = [:]
        var timers = LoopTimers()
        var armedDeadline: BootInstant?
        var nextToken = firstFreeToken
        var isStopped = false
        /// Whether the thread waits in `epoll_wait(2)`, or is about to. It must then be woken for new work.
        var isAsleep = false
    }

    private static let wakeToken: UInt64 = 0
    private static let timerToken: UInt64 = 1
    private static let firstFreeToken: UInt64 = 2

    // The descriptors are -1 until they are opened, which happens only once.
    private let epoll = Atomic<CInt>(-1)
    private let wake = Atomic<CInt>(-1)
    private let timer = Atomic<CInt>(-1)
    private let state = Lock(State())

    deinit {
        let (epoll, wake, timer) = (
            epoll.load(ordering: .acquiring), wake.load(ordering: .relaxed), timer.load(ordering: .relaxed)
        )
        for descriptor in [epoll, wake, timer] where descriptor >= 0 { close(descriptor) }
    }

    /// Opens the descriptors. Earlier work and timers wait until the thread runs. Must be called by one thread at a
    /// time.
    ///
    /// - Throws: ``SystemError``. No descriptor is open then, and the method may be called again.
    func open() throws(SystemError) {
        guard epoll.load(ordering: .relaxed) < 0 else { return }
        let flags = O_CLOEXEC | O_NONBLOCK
        let epoll = FileDescriptor(owning: try systemCall("epoll_create1") { epoll_create1(O_CLOEXEC) })
        let wake = FileDescriptor(owning: try systemCall("eventfd") { eventfd(0, flags) })
        let timer = FileDescriptor(
            owning: try systemCall("timerfd_create") { timerfd_create(CLOCK_BOOTTIME, flags) }
        )
        try Self.add(wake.rawValue, Self.wakeToken, to: epoll.rawValue)
        try Self.add(timer.rawValue, Self.timerToken, to: epoll.rawValue)
        self.wake.store(wake.release(), ordering: .relaxed)
        self.timer.store(timer.release(), ordering: .relaxed)
        self.epoll.store(epoll.release(), ordering: .releasing)
        state.withLock { arm(&$0) }
    }

    private static func add(_ descriptor: CInt, _ token: UInt64, to epoll: CInt) throws(SystemError) {
        var event = netwatch_epoll_event(events: EPOLLIN, data: UInt(token))
        try systemCall("epoll_ctl") { epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) }
    }

    func setExecutor(_ executor: UnownedSerialExecutor) {
        state.withLock { $0.executor = executor }
    }

    func enqueue(_ work: Work) {
        let wasAsleep = state.withLock { state in
            state.work.append(work)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if wasAsleep { wakeUp() }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        wakeUp()
    }

    // MARK: Descriptors

    func register(
        _ descriptor: CInt,
        for interest: EventLoop.Interest,
        handler: @escaping @Sendable (EventLoop.Readiness) -> Void
    ) throws(SystemError) -> EventLoop.Registration {
        let token = state.withLock { state in
            let token = state.nextToken
            state.nextToken += 1
            state.handlers[token] = handler
            return token
        }
        do {
            try control(EPOLL_CTL_ADD, descriptor, interest.rawValue, token)
        } catch {
            removeHandler(token)
            throw error
        }
        return EventLoop.Registration(token: token, descriptor: descriptor)
    }

    func update(
        _ registration: EventLoop.Registration,
        to interest: EventLoop.Interest
    ) throws(SystemError) {
        try control(EPOLL_CTL_MOD, registration.descriptor, interest.rawValue, registration.token)
    }

    func unregister(_ registration: EventLoop.Registration) {
        removeHandler(registration.token)
        // This fails only if the descriptor was already closed, which has also ended its registration.
        try? control(EPOLL_CTL_DEL, registration.descriptor, 0, registration.token)
    }

    private func removeHandler(_ token: UInt64) {
        // The handler must be released outside the lock: it may own the last reference to an object whose `deinit`
        // calls this class.
        let removed = state.withLock { $0.handlers.removeValue(forKey: token) }
        withExtendedLifetime(removed) {}
    }

    private func control(
        _ operation: CInt,
        _ descriptor: CInt,
        _ events: UInt32,
        _ token: UInt64
    ) throws(SystemError) {
        var event = netwatch_epoll_event(events: events, data: UInt(token))
        let epoll = epoll.load(ordering: .acquiring)
        try systemCall("epoll_ctl") { epoll_ctl(epoll, operation, descriptor, &event) }
    }

    // MARK: Timers

    func schedule(
        at deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        state.withLock { state in
            let timer = state.timers.insert(deadline: deadline, body)
            arm(&state)
            return timer
        }
    }

    func scheduleLimit(
        at deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        state.withLock { state in
            let timer = state.timers.insertLimit(deadline: deadline, body)
            arm(&state)
            return timer
        }
    }

    func cancel(_ timer: EventLoop.Timer) {
        let removed = state.withLock { $0.timers.remove(timer) }
        withExtendedLifetime(removed) {}
    }

    /// Arms the timer descriptor for the earliest deadline. Has no effect if it is already armed for that time or an
    /// earlier one.
    private func arm(_ state: inout State) {
        let timer = timer.load(ordering: .relaxed)
        guard timer >= 0, let earliest = state.timers.earliest else { return }
        if let armed = state.armedDeadline, armed <= earliest { return }
        state.armedDeadline = earliest
        // A time in the past makes the timer expire immediately. Zero would disarm it, and the kernel rejects a
        // negative time.
        let time = max(1, earliest.nanoseconds).quotientAndRemainder(dividingBy: 1_000_000_000)
        var setting = netwatch_itimerspec()
        setting.seconds = Int(time.quotient)
        setting.nanoseconds = Int(time.remainder)
        // This fails only for an invalid descriptor or time, which would be a bug.
        let result = timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, nil)
        precondition(result == 0, "timerfd_settime: \(errnoDescription(errno))")
    }

    // MARK: The thread

    /// Runs the loop until ``stop()``, and then finishes the remaining work.
    func run() {
        let epoll = epoll.load(ordering: .acquiring)
        var work: [Work] = []
        while turn(epoll, &work) {}
        runWork(&work)
    }

    /// Waits for events and handles them. Returns `false` after the loop was stopped.
    ///
    /// The timers come last, and are judged by the time before the handlers ran: data that arrives before a limit
    /// passes is read before the limit is judged.
    ///
    /// - Parameter work: The memory for ``runWork(_:)``.
    private func turn(_ epoll: CInt, _ work: inout [Work]) -> Bool {
        let time = withUnsafeTemporaryAllocation(of: netwatch_epoll_event.self, capacity: 64) { events in
            let timeout = state.withLock { $0.fallAsleep() ? CInt(-1) : 0 }
            let count = epoll_wait(epoll, events.baseAddress, CInt(events.count), timeout)
            let error = errno
            state.withLock { $0.isAsleep = false }
            precondition(count >= 0 || error == EINTR, "epoll_wait: \(errnoDescription(error))")
            let now = BootInstant.now
            return dispatch(events.prefix(max(0, Int(count)))) ? now : nil
        }
        runWork(&work)
        if let time { fireTimers(dueAt: time) }
        return state.withLock { !$0.isStopped }
    }

    /// Calls the handlers of ready descriptors. Returns whether the timer descriptor is one of them.
    private func dispatch(_ events: Slice<UnsafeMutableBufferPointer<netwatch_epoll_event>>) -> Bool {
        var isTimerDue = false
        for event in events {
            switch UInt64(event.data) {
            case Self.wakeToken: drain(wake.load(ordering: .relaxed))
            case Self.timerToken: isTimerDue = true
            case let token:
                let handler = state.withLock { $0.handlers[token] }
                handler?(EventLoop.Readiness(rawValue: event.events))
            }
        }
        return isTimerDue
    }

    private func fireTimers(dueAt time: BootInstant) {
        drain(timer.load(ordering: .relaxed))
        state.withLock { $0.armedDeadline = nil }
        while let body = state.withLock({ $0.timers.popDue(at: time) }) { body() }
        state.withLock { arm(&$0) }
    }

    /// The maximum number of items whose memory is kept for later turns: 1024. A burst may have many more.
    private static let maximumKept = 1024

    /// Runs all enqueued work.
    ///
    /// - Parameter work: An empty array. It changes places with the array of enqueued work, so that both keep their
    ///   memory.
    private func runWork(_ work: inout [Work]) {
        let executor = state.withLock { state in
            swap(&state.work, &work)
            return state.executor
        }
        for item in work {
            switch item {
            case .closure(let body): body()
            case .call(let call): call()
            case .job(let job): job.runSynchronously(on: executor!)
            }
        }
        work.removeAll(keepingCapacity: work.count <= Self.maximumKept)
    }

    private func wakeUp() {
        // This fails if the thread was never started, or if the counter is full. A full counter also wakes the thread.
        eventfd_write(wake.load(ordering: .relaxed), 1)
    }

    /// Resets the counter of an eventfd or a timerfd.
    private func drain(_ descriptor: CInt) {
        var counter: UInt64 = 0
        _ = read(descriptor, &counter, MemoryLayout.size(ofValue: counter))
    }
}

extension EventLoopCore.State {
    /// Returns whether the thread may sleep: there is no work, and the loop was not stopped. If so, records that the
    /// thread is asleep.
    fileprivate mutating func fallAsleep() -> Bool {
        isAsleep = work.isEmpty && !isStopped
        return isAsleep
    }
}
