/// How requests that have waited for one host are let go when its path is there again.
///
/// The first few go at once, in the order in which they failed; the rest follow one by one. A thousand requests
/// that set off in the same millisecond would each make a connection of their own to a server that has, perhaps,
/// just come back itself; and behind one router all machines come back in the same second, so the steps are of
/// random length.
public struct RetryPacing: Hashable, Sendable {
    /// How many go at once. Default 4, less than the six connections to a host that browsers make at most. At
    /// least 1; what lies below is moved there.
    public let atOnce: Int
    /// How long after its predecessor each of the others goes, on average: between half of it and one and a half.
    /// Default 25 ms: 40 requests each second, a thousand in 25 s. Negative is none.
    public let interval: Duration
    /// How long a request waits whose path is there already, which is then not what it lacks; twice as long each
    /// time it is tried again, and between three quarters of it and all of it by chance. Default 250 ms, at least
    /// 1 ms.
    public let firstDelay: Duration
    /// What that delay grows to. Default 30 s; at least ``firstDelay``.
    public let longestDelay: Duration

    /// Says how requests are let go.
    ///
    /// - Parameters:
    ///   - atOnce: How many go at once. Default 4.
    ///   - interval: How long after its predecessor each of the others goes. Default 25 ms.
    ///   - firstDelay: How long a request waits whose path is there already. Default 250 ms.
    ///   - longestDelay: What that delay grows to. Default 30 s.
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

    /// When each of `count` requests goes, in their order, counted from now.
    func offsets(of count: Int, using generator: inout some RandomNumberGenerator) -> [Duration] {
        var offset = Duration.zero
        return (0..<count).map { index in
            if index >= atOnce { offset += interval * Double.random(in: 0.5...1.5, using: &generator) }
            return offset
        }
    }

    /// - Parameter failures: How often the request has failed although its path was there; 0 is no delay.
    func delay(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        guard failures > 0 else { return .zero }
        let grown = firstDelay * Double(1 << min(failures - 1, 32))
        return min(grown, longestDelay) * Double.random(in: 0.75...1, using: &generator)
    }
}
