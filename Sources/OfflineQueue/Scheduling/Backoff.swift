internal import NetwatchEventLoop

/// A time in the scheduler: the duration since the queue was created, by a clock that never steps.
package typealias Moment = Duration

extension Moment {
    /// A time that is later than any other.
    static let never = Duration.seconds(Int64.max)
}

/// A random delay that grows exponentially. After the n-th failure in a row it is uniformly distributed between `base`
/// and min(`cap`, `base` · 2ⁿ): full jitter with a minimum.
package struct Backoff: Hashable, Sendable {
    /// The minimum delay. Default 2 s.
    package let base: Duration
    /// The maximum delay. Default 15 minutes.
    package let cap: Duration

    package static let defaultBase: Duration = .seconds(2)
    package static let defaultCap: Duration = .seconds(900)

    package init(base: Duration = defaultBase, cap: Duration = defaultCap) {
        self.base = base
        self.cap = max(base, cap)
    }

    /// Returns a random delay after this number of failures in a row.
    package func delay(after failures: Int, using random: inout SplitMix64) -> Duration {
        random.uniform(base...base.doubled(times: failures, upTo: cap))
    }
}

/// The random number generator SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
/// It is a value with a seed, so that a run of the scheduler can be replayed.
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

    /// Returns a uniformly distributed duration in the range, with a resolution of 1 µs.
    package mutating func uniform(_ range: ClosedRange<Duration>) -> Duration {
        let span = (range.upperBound - range.lowerBound) / Duration.microseconds(1)
        return range.lowerBound + .microseconds(Int64.random(in: 0...Int64(max(0, span)), using: &self))
    }
}
