internal import NetwatchEventLoop

/// The pacing of retries when the path to a host has come back.
///
/// The first few requests are retried immediately, in the order in which they failed. The rest follow one by one, so
/// that a thousand requests do not open a thousand connections at once to a server that may have just restarted. The
/// intervals are random, because all machines behind a router get their path back in the same second.
public struct RetryPacing: Hashable, Sendable {
    /// The number of requests that are retried immediately. Default: 4, which is fewer than the six connections that
    /// browsers open to a host. Values below 1 become 1.
    public let atOnce: Int
    /// The average interval between the other requests. Each interval is multiplied by a random factor from 0.5 to
    /// 1.5. Default: 25 ms. At this interval, a thousand requests take 25 s. Negative values become zero.
    public let interval: Duration
    /// The delay before the first retry of a request that failed although there was a path to its host. The delay
    /// doubles with each such failure, and is multiplied by a random factor from 0.75 to 1. Default: 250 ms. Values
    /// below 1 ms become 1 ms.
    public let firstDelay: Duration
    /// The limit up to which ``firstDelay`` is doubled. Default: 30 s. Values below ``firstDelay`` become
    /// ``firstDelay``.
    public let longestDelay: Duration

    /// Creates a retry pacing.
    ///
    /// - Parameters:
    ///   - atOnce: The number of requests that are retried immediately. Default: 4.
    ///   - interval: The average interval between the following requests. Default: 25 ms.
    ///   - firstDelay: The delay before the first retry after a failure although there was a path. Default: 250 ms.
    ///   - longestDelay: The limit up to which `firstDelay` is doubled. Default: 30 s.
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

    /// Returns the delays, from now, after which `count` waiting requests are retried, in ascending order.
    func offsets(of count: Int) -> [Duration] {
        var offset = Duration.zero
        return (0..<count).map { index in
            if index >= atOnce { offset += interval * Double.random(in: 0.5...1.5) }
            return offset
        }
    }

    /// Returns the delay before a retry of a request.
    ///
    /// - Parameter failures: The number of times that the request failed although there was a path. 0 means no delay.
    func delay(after failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        return firstDelay.doubled(times: failures - 1, upTo: longestDelay) * Double.random(in: 0.75...1)
    }
}
