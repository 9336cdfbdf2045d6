internal import NetwatchEventLoop

/// A time of the scheduler: the duration since the queue was created, on a clock that never steps.
package typealias Moment = Duration

extension Moment {
    /// A time later than any other.
    static let never = Duration.seconds(Int64.max)
}

/// Full jitter with a minimum: uniform(base, min(cap, base · 2ⁿ)) after the n-th failure in a row.
package struct Backoff: Hashable, Sendable {
    package let base: Duration
    package let cap: Duration

    package static let defaultBase: Duration = .seconds(2)
    package static let defaultCap: Duration = .seconds(900)

    package init(base: Duration = defaultBase, cap: Duration = defaultCap) {
        self.base = base
        self.cap = max(base, cap)
    }

    package func delay(after failures: Int, using random: inout SplitMix64) -> Duration {
        random.uniform(base...base.doubled(times: failures, upTo: cap))
    }
}

/// A small random generator. Its state is a value, so that a run of the scheduler can be replayed from its seed
/// (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
package struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a random duration in the range, in steps of a microsecond.
    package mutating func uniform(_ range: ClosedRange<Duration>) -> Duration {
        let span = (range.upperBound - range.lowerBound) / Duration.microseconds(1)
        return range.lowerBound + .microseconds(Int64.random(in: 0...Int64(max(0, span)), using: &self))
    }
}
