internal import Glibc
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

/// The readings of the kernel's clocks at one moment. The time of day is not among them, because setting it says nothing
/// about the network.
struct ClockReading: Hashable, Sendable {
    /// Stops while the machine is suspended.
    var monotonic: Duration
    /// Continues while the machine is suspended.
    var boottime: Duration

    /// The duration after which a reading is repeated: 1 ms. It is far shorter than ``ClockWatch/minSuspension``.
    private static let acceptedDuration: Duration = .milliseconds(1)

    /// Reads the clocks.
    ///
    /// If the thread is preempted between two clocks, their difference is wrong. So a reading that takes too long is
    /// repeated up to three times, and the fastest one is returned.
    static func now() -> ClockReading {
        var (fastest, duration) = timedReading()
        for _ in 0..<3 where duration > acceptedDuration {
            let (reading, time) = timedReading()
            if time < duration { (fastest, duration) = (reading, time) }
        }
        return fastest
    }

    private static func timedReading() -> (reading: ClockReading, duration: Duration) {
        let reading = ClockReading(
            monotonic: read(CLOCK_MONOTONIC),
            boottime: read(CLOCK_BOOTTIME)
        )
        return (reading, read(CLOCK_MONOTONIC) - reading.monotonic)
    }

    private static func read(_ clock: clockid_t) -> Duration {
        var time = timespec()
        // Fails only for an invalid clock ID.
        clock_gettime(clock, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// Detects suspensions by comparing clock readings. A pure value.
struct ClockWatch: Sendable {
    /// The shortest time that counts as a suspension: 100 ms.
    ///
    /// This is far longer than the time between two clock reads, and shorter than any real suspension.
    static let minSuspension: Duration = .milliseconds(100)

    private var last: ClockReading

    init(_ first: ClockReading) {
        last = first
    }

    /// Returns for how long the machine was suspended since the previous reading, and stores this one. Returns `nil` if
    /// it was not suspended.
    mutating func suspension(until reading: ClockReading) -> Duration? {
        let suspended = reading.suspended - last.suspended
        last = reading
        return suspended >= Self.minSuspension ? suspended : nil
    }
}

extension ClockReading {
    /// The total time for which the machine has been suspended since boot.
    fileprivate var suspended: Duration { boottime - monotonic }
}
