internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct ClockWatchTests {
    private let start = ClockReading(monotonic: .seconds(1000), boottime: .seconds(1500))

    /// Returns the suspension for clocks that have advanced by these durations.
    private func suspension(monotonic: Duration, boottime: Duration) -> Duration? {
        var watch = ClockWatch(start)
        return watch.suspension(until: start.later(monotonic: monotonic, boottime: boottime))
    }

    @Test func `clocks that advance together are not a suspension`() {
        for time in [Duration.zero, .milliseconds(1), .seconds(3600), .seconds(365 * 86_400)] {
            #expect(suspension(monotonic: time, boottime: time) == nil)
        }
    }

    @Test func `boot time ahead of monotonic time is a suspension`() {
        #expect(suspension(monotonic: .seconds(5), boottime: .seconds(65)) == .seconds(60))
        #expect(suspension(monotonic: .zero, boottime: .milliseconds(100)) == .milliseconds(100))
        #expect(suspension(monotonic: .zero, boottime: .milliseconds(99)) == nil)
    }

    @Test func `a suspension is reported once`() {
        var watch = ClockWatch(start)
        let later = start.later(monotonic: .seconds(1), boottime: .seconds(11))
        #expect(watch.suspension(until: later) == .seconds(10))
        #expect(watch.suspension(until: later) == nil)
    }

    @Test func `reading the real clocks many times reports no suspension`() {
        var watch = ClockWatch(.now())
        for _ in 0..<10_000 { #expect(watch.suspension(until: .now()) == nil) }
    }
}

@Suite struct ClockObserverTests {
    /// The clock readings that the test sets.
    private final class Clocks: Sendable {
        private let reading = Lock(ClockReading(monotonic: .zero, boottime: .zero))

        func read() -> ClockReading { reading.withLock { $0 } }

        func advance(monotonic: Duration, boottime: Duration) {
            reading.withLock { $0 = $0.later(monotonic: monotonic, boottime: boottime) }
        }
    }

    private let loop: EventLoop
    private let clocks = Clocks()
    private let suspensions = Recorder<Duration>()
    private let observer: ClockObserver

    init() throws {
        loop = try EventLoop(label: "test")
        observer = ClockObserver(loop: loop, readClocks: clocks.read) { [suspensions] in
            suspensions.record($0)
        }
        observer.start()
    }

    /// Returns the kernel's description of the timer (`/proc/self/fdinfo`): its clock and the flags with which it was
    /// set.
    private func timerSettings() async throws -> String {
        let descriptor = try #require(await observer.descriptor)
        return try shell("grep -E '^(clockid|settime flags)' /proc/\(getpid())/fdinfo/\(descriptor)")
    }

    @Test func `the timer descriptor is armed for changes of the wall clock, which include resumption`()
        async throws
    {
        // CLOCK_REALTIME; TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET.
        #expect(try await timerSettings() == "clockid: 0\nsettime flags: 03\n")
        #expect(observer.failure.withLock { $0 } == nil)
    }

    @Test func `a readable descriptor compares the clocks and is rearmed`() async throws {
        clocks.advance(monotonic: .seconds(1), boottime: .seconds(31))
        let descriptor = try #require(await observer.descriptor)
        // A test must not set the machine's clock, so this one makes the timer expire instead.
        var soon = netwatch_itimerspec()
        soon.nanoseconds = 1
        try #require(timerfd_settime(descriptor, 0, &soon, nil) == 0)
        try await suspensions.wait { $0 == [.seconds(30)] }
        #expect(try await timerSettings() == "clockid: 0\nsettime flags: 03\n")
    }

    @Test func `the clocks can be compared at any time`() async {
        await observer.check()
        #expect(suspensions.values == [])
        clocks.advance(monotonic: .seconds(1), boottime: .seconds(100))
        await observer.check()
        await observer.check()
        #expect(suspensions.values == [.seconds(99)])
    }

    @Test func `releasing the observer closes its descriptor and stops its calls`() async throws {
        weak var gone: ClockObserver?
        var descriptor: CInt?
        do {
            let other = ClockObserver(loop: loop) { _ in }
            other.start()
            descriptor = await other.descriptor
            gone = other
        }
        #expect(descriptor != nil)
        #expect(gone == nil)
    }
}

extension ClockReading {
    fileprivate func later(monotonic: Duration, boottime: Duration) -> ClockReading {
        ClockReading(monotonic: self.monotonic + monotonic, boottime: self.boottime + boottime)
    }
}
