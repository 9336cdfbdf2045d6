internal import NetwatchEventLoop

/// Limits the retries to an origin, so that they do not multiply the load on a server in trouble: within 10 s, to 20 %
/// of the first attempts plus one per second. First attempts are not limited. A retry to which the server gives a final
/// response does not count.
///
/// Without a limit, each failing request adds its retries to the load that makes it fail. Finagle introduced such
/// budgets, with the same share and window. A retry with a final response adds no further retry. If it counted, the last
/// requests of a long queue, which are all retries, would be sent at one per second.
struct RetryBudget: Hashable, Sendable {
    /// The parameters of a budget.
    struct Limits: Hashable, Sendable {
        /// The number of retries per first attempt.
        var share = 0.2
        /// The number of retries per second that are always permitted.
        var rate = 1.0
    }

    /// The length of the window in seconds.
    private static let window: Int64 = 10

    private struct Second: Hashable, Sendable {
        let number: Int64
        var firstAttempts = 0
        var retries = 0
    }

    let limits: Limits
    /// The seconds of the window in which requests were sent, in order: ten at most, and the current one.
    private var seconds: [Second] = []
    /// The retries that claims in progress may take.
    private var reserved = 0

    init(limits: Limits) {
        self.limits = limits
    }

    /// Reserves up to `count` retries for a claim.
    ///
    /// - Parameter minimum: The number of retries that are reserved even if the budget is used up. Default 0.
    mutating func reserve(_ count: Int, atLeast minimum: Int = 0, now: Moment) -> RetryAllowance {
        let granted = min(count, max(minimum, available(at: now.components.seconds)))
        let wait = granted < count ? wait(now: now) : .zero
        reserved += granted
        return RetryAllowance(count: granted, wait: wait)
    }

    /// Records the result of a claim.
    mutating func record(_ use: RetryUse, now: Moment) {
        reserved -= use.reserved
        guard use.firstAttempts > 0 || use.retries > 0 else { return }
        let number = now.components.seconds
        seconds.removeAll { $0.number < number - Self.window }
        if seconds.last?.number != number { seconds.append(Second(number: number)) }
        seconds[seconds.count - 1].firstAttempts += use.firstAttempts
        seconds[seconds.count - 1].retries += use.retries
    }

    /// Records that a retry has received a final response.
    ///
    /// - Parameter began: When it began.
    mutating func retrySucceeded(began: Moment) {
        let number = began.components.seconds
        guard let index = seconds.lastIndex(where: { $0.number <= number && $0.retries > 0 }) else { return }
        seconds[index].retries -= 1
    }

    /// Returns the number of retries that are permitted in the second with this number.
    private func available(at number: Int64) -> Int {
        let recent = seconds.filter { $0.number > number - Self.window }
        let permitted = recent.reduce(0) { $0 + Double($1.firstAttempts) } * limits.share
        let used = recent.reduce(reserved) { $0 + $1.retries }
        return max(0, Int(permitted + limits.rate * Double(Self.window)) - used)
    }

    /// Returns the time until a retry is permitted if no further request is sent: until the retries of an earlier
    /// second leave the window. At least a second, because a retry may be permitted already.
    private func wait(now: Moment) -> Duration {
        let number = now.components.seconds
        let later = (1...Self.window).first { available(at: number + $0) > 0 } ?? Self.window
        return max(.seconds(1), .seconds(number + later) - now)
    }
}

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
