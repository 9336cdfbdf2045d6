internal import NetwatchEventLoop

/// Reports that the machine resumed from a suspension. Does not poll.
///
/// Confined to the loop's thread, which also calls the callback.
actor ClockObserver {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The error that prevents the kernel from notifying this process of suspensions; `nil` if there is none.
    ///
    /// ``check()`` also works without these notifications.
    nonisolated let failure = Lock<SystemError?>(nil)

    private let readClocks: @Sendable () -> ClockReading
    private let onResume: @Sendable (Duration) -> Void
    private var clocks: ClockWatch
    private var timer: ClockStepTimer?
    private var watch: DescriptorWatch?

    /// - Parameters:
    ///   - readClocks: Reads the clocks; replaced by tests.
    ///   - onResume: Called on the loop's thread with the length of the suspension.
    init(
        loop: EventLoop,
        readClocks: @escaping @Sendable () -> ClockReading = ClockReading.now,
        onResume: @escaping @Sendable (Duration) -> Void
    ) {
        self.loop = loop
        self.readClocks = readClocks
        self.onResume = onResume
        clocks = ClockWatch(readClocks())
    }

    /// Starts observing. Can be called from any thread; on the loop's thread it takes effect immediately.
    nonisolated func start() {
        loop.runAndWait { self.assumeIsolated { $0.arm() } }
    }

    private func arm() {
        do throws(SystemError) {
            let timer = try ClockStepTimer()
            watch = try watch(timer)
            self.timer = timer
        } catch {
            failure.withLock { $0 = error }
        }
    }

    private func watch(_ timer: ClockStepTimer) throws(SystemError) -> DescriptorWatch {
        try DescriptorWatch(loop: loop, timer.descriptor, of: timer, for: .read) { [weak self] _ in
            self?.assumeIsolated { $0.timerWasCancelled() }
        }
    }

    /// Rearms the timer, and only then compares the clocks. In the reverse order, a suspension in between would be
    /// missed.
    private func timerWasCancelled() {
        do throws(SystemError) {
            try timer?.rearm()
        } catch {
            // A timer that cannot be rearmed would stay readable forever.
            watch = nil
            failure.withLock { $0 = error }
        }
        check()
    }

    /// Compares the clocks with their previous reading and reports a suspension. For callers that are awake anyway.
    func check() {
        if let suspension = clocks.suspension(until: readClocks()) { onResume(suspension) }
    }
}

extension ClockObserver {
    /// The descriptor that becomes readable when the machine resumes, and when the wall clock is set; `nil` if the timer
    /// failed.
    var descriptor: CInt? { timer?.descriptor }
}
