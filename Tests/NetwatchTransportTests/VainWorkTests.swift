internal import Testing

@testable internal import NetwatchTransport

/// Finding the connection that keeps libcurl busy without useful data, with simulated samples.
@Suite struct VainWorkTests {
    private static let culprit = WatchedSocket(descriptor: 7, number: 1)
    private static let other = WatchedSocket(descriptor: 8, number: 2)

    /// The values between two samples.
    private struct Interval: Sendable {
        var used = TurnWatchdog.interval
        var useful: UInt64 = 0
        var read: [WatchedSocket: UInt64] = [culprit: 50_000_000, other: 0]
    }

    /// Returns the connection that is shut down, by number of intervals.
    private func cuts(_ intervals: [Interval]) -> [Int: WatchedSocket] {
        var work = VainWork()
        var (time, useful) = (Duration.seconds(1000), UInt64(5))
        var read: [WatchedSocket: UInt64] = [:]
        var cuts: [Int: WatchedSocket] = [:]
        // The baseline.
        read = intervals[0].read.mapValues { _ in 7 }
        _ = work.judge(.init(processorTime: time, usefulBytes: useful)) { read }
        for (index, interval) in intervals.enumerated() {
            time += interval.used
            useful += interval.useful
            read = interval.read.reduce(into: [:]) { $0[$1.key] = read[$1.key, default: 0] + $1.value }
            let account = VainWork.Account(processorTime: time, usefulBytes: useful)
            cuts[index] = work.judge(account) { read }?.socket
        }
        return cuts
    }

    @Test func `a connection that is read from in vain is cut at the patience's end`() {
        #expect(cuts(Array(repeating: Interval(), count: 5)) == [3: Self.culprit])
    }

    @Test func `one after another is cut`() {
        let both = Interval(read: [Self.culprit: 50_000_000, Self.other: 50_000_000])
        let cuts = cuts(Array(repeating: both, count: 6))
        #expect(Set(cuts.values) == [Self.culprit, Self.other])
        #expect(cuts.keys.sorted() == [3, 4])
    }

    @Test func `a pause now and then does not help`() {
        let pattern = [
            Interval(), Interval(), Interval(used: .zero, read: [Self.culprit: 0, Self.other: 0]),
        ]
        #expect(cuts(Array(repeating: pattern, count: 10).flatMap(\.self)).values.contains(Self.culprit))
    }

    @Test(
        arguments: [
            // A download at full speed, a body of which little is left after decoding, and an upload.
            (useful: 50_000_000, read: 50_000_000), (useful: 600_000, read: 50_000_000),
            (useful: 50_000_000, read: 500_000),
            // Handshakes, each of which reads little.
            (useful: 0, read: 10_000),
        ] as [(useful: UInt64, read: UInt64)]
    ) func `useful work is nothing to blame anybody for`(useful: UInt64, read: UInt64) {
        let interval = Interval(useful: useful, read: [Self.culprit: read, Self.other: read])
        #expect(cuts(Array(repeating: interval, count: 50)).isEmpty)
    }

    @Test func `a thread that waits is not busy`() {
        // As in a callback that blocks, or while the machine is suspended.
        let interval = Interval(used: .milliseconds(5))
        #expect(cuts(Array(repeating: interval, count: 50)).isEmpty)
    }

    @Test func `a thread that has little of the processor is busy all the same`() {
        let interval = Interval(used: TurnWatchdog.interval / 40)
        #expect(cuts(Array(repeating: interval, count: 20)) == [15: Self.culprit])
    }

    @Test func `many connections that take turns are not to blame`() {
        let intervals = (0..<50).map { index in
            let socket = WatchedSocket(descriptor: 100 + CInt(index % 10), number: 100 + UInt64(index % 10))
            let idle = (0..<10).map { WatchedSocket(descriptor: 100 + $0, number: 100 + UInt64($0)) }
            return Interval(
                read: Dictionary(uniqueKeysWithValues: idle.map { ($0, $0 == socket ? 1_000_000 : 0) })
            )
        }
        #expect(cuts(intervals).isEmpty)
    }

    @Test func `another connection with the same descriptor begins anew`() {
        let intervals = (0..<50).map { index in
            Interval(read: [WatchedSocket(descriptor: 7, number: UInt64(index / 3)): 50_000_000])
        }
        #expect(cuts(intervals).isEmpty)
    }
}
