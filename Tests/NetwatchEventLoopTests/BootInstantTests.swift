internal import Glibc
internal import NetwatchEventLoop
internal import Testing

/// The arithmetic of ``BootInstant`` at the ends of its range, and its clock.
@Suite struct BootInstantTests {
    @Test func `the clock is CLOCK_BOOTTIME`() {
        let (first, now, last) = (reading(), BootInstant.now, reading())
        #expect(first <= now && now <= last)
    }

    private func reading() -> BootInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return BootInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    @Test(
        arguments: [.zero, .nanoseconds(1), .milliseconds(1500), .seconds(-3), .nanoseconds(-1)] as [Duration]
    )
    func `a duration and the instant after it agree`(duration: Duration) {
        let start = BootInstant(nanoseconds: 5_000_000_000)
        #expect(start.duration(to: start.advanced(by: duration)) == duration)
        #expect((start + duration) - duration == start)
        #expect((start < start + duration) == (duration > .zero))
    }

    @Test func `a part of a nanosecond is rounded down`() {
        let start = BootInstant(nanoseconds: 10)
        #expect(
            start + Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999)
                == .init(nanoseconds: 11)
        )
        #expect(start + Duration(secondsComponent: 0, attosecondsComponent: -1) == .init(nanoseconds: 9))
    }

    @Test func `durations that exceed the range lead to its ends`() {
        let now = BootInstant.now
        #expect(now + .seconds(Int64.max) == BootInstant(nanoseconds: .max))
        #expect(BootInstant(nanoseconds: -1) + .seconds(Int64.min) == BootInstant(nanoseconds: .min))
        #expect(BootInstant(nanoseconds: .max) + .nanoseconds(1) == BootInstant(nanoseconds: .max))
        #expect(BootInstant(nanoseconds: .min) - .nanoseconds(1) == BootInstant(nanoseconds: .min))
        #expect(
            BootInstant(nanoseconds: .min).duration(to: BootInstant(nanoseconds: .max))
                == .nanoseconds(Int64.max)
        )
    }
}
