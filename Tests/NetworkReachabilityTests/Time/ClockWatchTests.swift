internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct ClockWatchTests {
    private let start = ClockReading(
        monotonic: .seconds(1000),
        boottime: .seconds(1500),
        realtime: .seconds(1_800_000_000)
    )

    /// Returns the events for clocks that have advanced by these durations.
    private func events(
        monotonic: Duration,
        boottime: Duration,
        realtime: Duration
    ) -> [ClockWatch.Event] {
        var watch = ClockWatch(start)
        return watch.compare(with: start.later(monotonic: monotonic, boottime: boottime, realtime: realtime))
    }

    @Test func `clocks that advance together cause no event`() {
        for time in [Duration.zero, .milliseconds(1), .seconds(3600), .seconds(365 * 86_400)] {
            #expect(events(monotonic: time, boottime: time, realtime: time) == [])
        }
    }

    @Test func `boot time ahead of monotonic time is a suspension`() {
        #expect(
            events(monotonic: .seconds(5), boottime: .seconds(65), realtime: .seconds(65))
                == [.resumed(after: .seconds(60))]
        )
        #expect(
            events(monotonic: .zero, boottime: .milliseconds(100), realtime: .milliseconds(100))
                == [.resumed(after: .milliseconds(100))]
        )
        #expect(events(monotonic: .zero, boottime: .milliseconds(99), realtime: .milliseconds(99)) == [])
    }

    @Test func `time of day ahead of boot time is a clock step`() {
        #expect(
            events(monotonic: .seconds(1), boottime: .seconds(1), realtime: .seconds(601))
                == [.clockStepped(by: .seconds(600))]
        )
        #expect(
            events(monotonic: .seconds(1), boottime: .seconds(1), realtime: .seconds(-1))
                == [.clockStepped(by: .seconds(-2))]
        )
    }

    @Test func `a leap second and the corrections of time daemons are not steps`() {
        for correction in [-1999, -1000, -400, -128, 128, 400, 1000, 1999] {
            let realtime: Duration = .seconds(64) + .milliseconds(correction)
            #expect(events(monotonic: .seconds(64), boottime: .seconds(64), realtime: realtime) == [])
        }
    }

    @Test func `a suspension followed by a clock step is reported as both, once`() {
        var watch = ClockWatch(start)
        let later = start.later(monotonic: .seconds(1), boottime: .seconds(11), realtime: .seconds(14))
        #expect(
            watch.compare(with: later) == [.resumed(after: .seconds(10)), .clockStepped(by: .seconds(3))]
        )
        #expect(watch.compare(with: later) == [])
    }

    @Test func `reading the real clocks many times causes no event`() {
        var watch = ClockWatch(.now())
        for _ in 0..<10_000 { #expect(watch.compare(with: .now()) == []) }
    }
}

@Suite struct ClockObserverTests {
    /// The clock readings that the test sets.
    private final class Clocks: Sendable {
        private let reading = Lock(ClockReading(monotonic: .zero, boottime: .zero, realtime: .zero))

        func read() -> ClockReading { reading.withLock { $0 } }

        func advance(monotonic: Duration, boottime: Duration, realtime: Duration) {
            reading.withLock {
                $0 = $0.later(monotonic: monotonic, boottime: boottime, realtime: realtime)
            }
        }
    }

    private let loop: EventLoop
    private let clocks = Clocks()
    private let events = Recorder<ClockWatch.Event>()
    private let observer: ClockObserver

    init() throws {
        loop = try EventLoop(label: "test")
        observer = ClockObserver(loop: loop, readClocks: clocks.read) { [events] in events.record($0) }
        observer.start()
    }

    /// Returns the kernel's description of the timer (`/proc/self/fdinfo`): its clock and the flags with which it was
    /// set.
    private func timerSettings() async throws -> String {
        let descriptor = try #require(await observer.descriptor)
        return try shell("grep -E '^(clockid|settime flags)' /proc/\(getpid())/fdinfo/\(descriptor)")
    }

    @Test func `the timer descriptor is armed for clock steps`() async throws {
        // CLOCK_REALTIME; TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET.
        #expect(try await timerSettings() == "clockid: 0\nsettime flags: 03\n")
        #expect(observer.failure.withLock { $0 } == nil)
    }

    @Test func `a readable descriptor compares the clocks and is rearmed`() async throws {
        clocks.advance(monotonic: .seconds(1), boottime: .seconds(31), realtime: .seconds(31))
        let descriptor = try #require(await observer.descriptor)
        // A test must not set the machine's clock, so this one makes the timer expire instead.
        var soon = netwatch_itimerspec()
        soon.nanoseconds = 1
        try #require(timerfd_settime(descriptor, 0, &soon, nil) == 0)
        try await events.wait { $0 == [.resumed(after: .seconds(30))] }
        #expect(try await timerSettings() == "clockid: 0\nsettime flags: 03\n")
    }

    @Test func `the clocks can be compared at any time`() async {
        await observer.check()
        #expect(events.values == [])
        clocks.advance(monotonic: .seconds(1), boottime: .seconds(1), realtime: .seconds(100))
        await observer.check()
        await observer.check()
        #expect(events.values == [.clockStepped(by: .seconds(99))])
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
    fileprivate func later(monotonic: Duration, boottime: Duration, realtime: Duration) -> ClockReading {
        ClockReading(
            monotonic: self.monotonic + monotonic,
            boottime: self.boottime + boottime,
            realtime: self.realtime + realtime
        )
    }
}
