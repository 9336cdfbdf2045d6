internal import Testing

@testable internal import NetwatchTransport

/// The detection of connections that keep libcurl busy without useful data, with simulated samples.
@Suite struct BusyLoopDetectorTests {
    private static let culprit = WatchedSocket(descriptor: 7, number: 1)
    private static let other = WatchedSocket(descriptor: 8, number: 2)

    /// The changes between two samples.
    private struct Interval: Sendable {
        var used = TurnWatchdog.interval
        var useful: UInt64 = 0
        var read: [WatchedSocket: UInt64] = [culprit: 50_000_000, other: 0]
    }

    /// Returns the connections that are shut down, by the index of the interval.
    private func shutDown(_ intervals: [Interval]) -> [Int: WatchedSocket] {
        var detector = BusyLoopDetector()
        var (time, useful) = (Duration.seconds(1000), UInt64(5))
        var read: [WatchedSocket: UInt64] = [:]
        var shutDown: [Int: WatchedSocket] = [:]
        // The first sample is the baseline.
        read = intervals[0].read.mapValues { _ in 7 }
        _ = detector.evaluate(.init(processorTime: time, usefulBytes: useful)) { read }
        for (index, interval) in intervals.enumerated() {
            time += interval.used
            useful += interval.useful
            read = interval.read.reduce(into: [:]) { $0[$1.key] = read[$1.key, default: 0] + $1.value }
            let sample = BusyLoopDetector.Sample(processorTime: time, usefulBytes: useful)
            shutDown[index] = detector.evaluate(sample) { read }?.socket
        }
        return shutDown
    }

    @Test func `a connection with useless data is shut down after the required number of samples`() {
        #expect(shutDown(Array(repeating: Interval(), count: 5)) == [3: Self.culprit])
    }

    @Test func `several connections with useless data are shut down one after another`() {
        let both = Interval(read: [Self.culprit: 50_000_000, Self.other: 50_000_000])
        let connections = shutDown(Array(repeating: both, count: 6))
        #expect(Set(connections.values) == [Self.culprit, Self.other])
        #expect(connections.keys.sorted() == [3, 4])
    }

    @Test func `a pause between samples does not prevent the shutdown`() {
        let pattern = [
            Interval(), Interval(), Interval(used: .zero, read: [Self.culprit: 0, Self.other: 0]),
        ]
        #expect(shutDown(Array(repeating: pattern, count: 10).flatMap(\.self)).values.contains(Self.culprit))
    }

    @Test(
        arguments: [
            // A download at full speed, a body of which little is left after decoding, and an upload.
            (useful: 50_000_000, read: 50_000_000), (useful: 600_000, read: 50_000_000),
            (useful: 50_000_000, read: 500_000),
            // Handshakes, each of which reads little.
            (useful: 0, read: 10_000),
        ] as [(useful: UInt64, read: UInt64)]
    ) func `useful work shuts nothing down`(useful: UInt64, read: UInt64) {
        let interval = Interval(useful: useful, read: [Self.culprit: read, Self.other: read])
        #expect(shutDown(Array(repeating: interval, count: 50)).isEmpty)
    }

    @Test func `a thread that waits is not busy`() {
        // A thread uses no CPU time in a callback that blocks, and while the machine is suspended.
        let interval = Interval(used: .milliseconds(5))
        #expect(shutDown(Array(repeating: interval, count: 50)).isEmpty)
    }

    @Test func `a busy thread is detected even if it gets little CPU time`() {
        let interval = Interval(used: TurnWatchdog.interval / 40)
        #expect(shutDown(Array(repeating: interval, count: 20)) == [15: Self.culprit])
    }

    @Test func `connections that send useless data in turn are not shut down`() {
        let intervals = (0..<50).map { index in
            let socket = WatchedSocket(descriptor: 100 + CInt(index % 10), number: 100 + UInt64(index % 10))
            let idle = (0..<10).map { WatchedSocket(descriptor: 100 + $0, number: 100 + UInt64($0)) }
            return Interval(
                read: Dictionary(uniqueKeysWithValues: idle.map { ($0, $0 == socket ? 1_000_000 : 0) })
            )
        }
        #expect(shutDown(intervals).isEmpty)
    }

    @Test func `another connection with the same descriptor is counted separately`() {
        let intervals = (0..<50).map { index in
            Interval(read: [WatchedSocket(descriptor: 7, number: UInt64(index / 3)): 50_000_000])
        }
        #expect(shutDown(intervals).isEmpty)
    }
}
