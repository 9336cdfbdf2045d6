internal import NetwatchEventLoop

/// The pacing of retries after the path to a host has returned.
///
/// The first few requests are retried immediately, in the order in which they failed. The rest follow one by one.
/// Otherwise a thousand requests would open a thousand connections at once to a server that may have just restarted.
/// The machines behind one router get their path back in the same second, so the intervals are random.
public struct RetryPacing: Hashable, Sendable {
    /// The number of requests retried immediately. Default: 4, fewer than the six connections that browsers
    /// open to a host. Values below 1 become 1.
    public let atOnce: Int
    /// The average interval between the following requests. Each interval is multiplied by a random factor from
    /// 0.5 to 1.5. Default: 25 ms, which is 40 requests per second, or 25 s for a thousand. Negative values
    /// become zero.
    public let interval: Duration
    /// The delay before the first retry of a request that failed although the host had a path. The delay doubles with
    /// each retry and is multiplied by a random factor from 0.75 to 1. Default: 250 ms. Minimum: 1 ms.
    public let firstDelay: Duration
    /// The maximum of that delay. Default: 30 s. Values below ``firstDelay`` become ``firstDelay``.
    public let longestDelay: Duration

    /// Creates a retry pacing.
    ///
    /// - Parameters:
    ///   - atOnce: The number of requests retried immediately. Default: 4.
    ///   - interval: The average interval between the following requests. Default: 25 ms.
    ///   - firstDelay: The delay before the first retry although the host had a path. Default: 250 ms.
    ///   - longestDelay: The maximum of that delay. Default: 30 s.
    public init(
        atOnce: Int = 4,
        interval: Duration = .milliseconds(25),
        firstDelay: Duration = .milliseconds(250),
        longestDelay: Duration = .seconds(30)
    ) {
        self.atOnce = max(atOnce, 1)
        self.interval = max(interval, .zero)
        self.firstDelay = max(firstDelay, .milliseconds(1))
        self.longestDelay = max(longestDelay, self.firstDelay)
    }

    /// Returns the delay of each of `count` requests from now, in their order.
    func offsets(of count: Int, using generator: inout some RandomNumberGenerator) -> [Duration] {
        var offset = Duration.zero
        return (0..<count).map { index in
            if index >= atOnce { offset += interval * Double.random(in: 0.5...1.5, using: &generator) }
            return offset
        }
    }

    /// - Parameter failures: How often the request failed although there was a path. 0 means no delay.
    func delay(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        guard failures > 0 else { return .zero }
        return firstDelay.doubled(times: failures - 1, upTo: longestDelay)
            * Double.random(in: 0.75...1, using: &generator)
    }
}
