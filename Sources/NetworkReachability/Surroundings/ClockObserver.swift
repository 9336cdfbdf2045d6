internal import NetwatchEventLoop
internal import Synchronization

/// Tells when the machine has resumed and when its clock was set, without looking from time to time.
///
/// Confined to the loop's thread, like what it tells.
actor ClockObserver {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Why the kernel does not wake us when the clock is set; `nil` while it does. ``check()`` works
    /// all the same.
    nonisolated let failure = Mutex<SystemError?>(nil)

    private let readClocks: @Sendable () -> ClockReading
    private let onFinding: @Sendable (ClockWatch.Finding) -> Void
    private var clocks: ClockWatch
    private var timer: ClockStepTimer?
    private var watch: DescriptorWatch?

    /// - Parameters:
    ///   - readClocks: The clocks; tests put their own here.
    ///   - onFinding: Called on the loop's thread.
    init(
        loop: EventLoop,
        readClocks: @escaping @Sendable () -> ClockReading = ClockReading.now,
        onFinding: @escaping @Sendable (ClockWatch.Finding) -> Void
    ) {
        self.loop = loop
        self.readClocks = readClocks
        self.onFinding = onFinding
        clocks = ClockWatch(readClocks())
    }

    /// Begins to observe. Callable from any thread; at once on the loop's.
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
            self?.assumeIsolated { $0.clockWasSet() }
        }
    }

    /// Armed again before the clocks are read, so that no step falls between.
    private func clockWasSet() {
        do throws(SystemError) {
            try timer?.rearm()
        } catch {
            // A timer that cannot be armed would stay readable for ever.
            watch = nil
            failure.withLock { $0 = error }
        }
        check()
    }

    /// Compares the clocks now, for whoever is awake anyway.
    func check() {
        for finding in clocks.compare(with: readClocks()) { onFinding(finding) }
    }
}

extension ClockObserver {
    /// The descriptor that the kernel wakes us by; `nil` when it does not.
    var descriptor: CInt? { timer?.descriptor }
}
