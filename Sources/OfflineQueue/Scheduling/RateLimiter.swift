/// Limits the rate of requests to a number per second, with bursts: a token bucket in the form of the generic cell rate
/// algorithm (ITU-T I.371). It needs one time and no timer of its own.
struct RateLimiter: Sendable {
    /// The time between two requests at the maximum rate.
    private let interval: Duration
    /// By how much requests may be ahead of the rate.
    private let tolerance: Duration
    /// The time at which the next request would be sent at the maximum rate.
    private var next: Moment = .zero
    /// The credits: for each time at which turns were taken, how much of them may still be given back. The earliest
    /// time comes first.
    private var credits: [(taken: Moment, amount: Duration)] = []

    init(_ limit: RateLimit) {
        self.init(perSecond: limit.requestsPerSecond, burst: limit.burst)
    }

    init(perSecond: Double, burst: Int) {
        interval = Duration.seconds(1) / perSecond
        tolerance = interval * (burst - 1)
    }

    /// Returns a limiter with another rate and burst. It permits as many requests at once as this one does now, but at
    /// most its burst.
    func changed(to limit: RateLimit, now: Moment) -> RateLimiter {
        var new = RateLimiter(limit)
        guard (new.interval, new.tolerance) != (interval, tolerance) else { return self }
        let ahead = max(.zero, next - now)
        let permitted = (tolerance + interval - ahead) / interval
        new.next = now + new.interval * max(0, Double(limit.burst) - permitted)
        new.credits = credits.map { (taken: $0.taken, amount: new.interval * ($0.amount / interval)) }
        new.limitCredits(to: new.next - now)
        return new
    }

    /// The time from which a request may be sent.
    var opensAt: Moment { next - tolerance }

    /// Takes the turn of one request. ``settle(unused:of:taken:)`` must follow.
    mutating func take(now: Moment) {
        limitCredits(to: max(.zero, next - now))
        next = max(next, now) + interval
        if credits.last?.taken == now {
            credits[credits.count - 1].amount += interval
        } else {
            credits.append((now, interval))
        }
    }

    /// Gives the unused turns of a claim back, if the claim found fewer requests than it had turns.
    ///
    /// A limiter that was idle for long enough already permits a full burst. A turn that was taken before the idle time
    /// is then not given back. Otherwise more requests than a burst could be sent at once.
    ///
    /// - Parameters:
    ///   - unused: The number of turns to give back.
    ///   - count: The number of turns that the claim took.
    ///   - taken: When it took them.
    mutating func settle(unused: Int, of count: Int, taken: Moment) {
        guard let index = credits.firstIndex(where: { $0.taken == taken }) else { return }
        next -= min(interval * unused, credits[index].amount)
        credits[index].amount -= interval * count
        if credits[index].amount <= .zero { credits.remove(at: index) }
    }

    /// Reduces the credits so that giving all of them back does not make the limiter more permissive than if their
    /// turns had not been taken. The earliest credits are reduced first.
    private mutating func limitCredits(to maximum: Duration) {
        var excess = credits.reduce(.zero) { $0 + $1.amount } - maximum
        while excess > .zero, let first = credits.first {
            guard first.amount <= excess else { return credits[0].amount -= excess }
            credits.removeFirst()
            excess -= first.amount
        }
    }
}

/// The rate limits of all requests together, and of those to each host.
struct RateLimiters: Sendable {
    private var all: RateLimiter?
    private var hosts: [String: RateLimiter] = [:]

    init(_ limits: [RateLimit] = []) {
        use(limits, now: .zero)
    }

    /// Replaces the limits. A limit of a host that had none begins with its full burst.
    mutating func use(_ limits: [RateLimit], now: Moment) {
        let old = self
        (all, hosts) = (nil, [:])
        for limit in limits {
            let host = limit.host?.lowercased()
            let limiter = old.limiter(of: host)?.changed(to: limit, now: now) ?? RateLimiter(limit)
            if let host { hosts[host] = limiter } else { all = limiter }
        }
    }

    private func limiter(of host: String?) -> RateLimiter? {
        if let host { hosts[host] } else { all }
    }

    /// The time from which any request may be sent; `nil` without a limit.
    var opensAt: Moment? { all?.opensAt }

    /// The time from which requests to a host may be sent as far as its own limit is concerned; `nil` without a limit.
    func opensAt(_ host: String) -> Moment? { hosts[host]?.opensAt }

    mutating func take(of host: String, now: Moment) {
        all?.take(now: now)
        hosts[host]?.take(now: now)
    }

    mutating func settle(unused: Int, of count: Int, to host: String, taken: Moment) {
        all?.settle(unused: unused, of: count, taken: taken)
        hosts[host]?.settle(unused: unused, of: count, taken: taken)
    }
}

/// The number of requests that an origin may have in flight, adapted to what the server can take.
///
/// The window grows by 1/N with each success, where N is its size: by one request for each full window of successes.
/// At a sign of overload it shrinks to 70 %. Postfix uses the same growth. With a step of ±1, Postfix measured that
/// 50 % of deliveries to a limiting server were deferred; with steps of 1/N, 16.5 %.
struct SendWindow: Hashable, Sendable {
    /// The factor by which a window shrinks.
    static let defaultDecrease = 0.7

    private let decrease: Double
    private var ceiling: Double
    private var size: Double
    /// The time of the last reduction.
    private var shrunkAt: Moment?

    /// Creates a window that is as large as the configured limit. A server that shows no overload is never slowed down.
    init(ceiling: Int, decrease: Double = defaultDecrease) {
        self.decrease = decrease
        self.ceiling = Double(ceiling)
        size = Double(ceiling)
    }

    var limit: Int { max(1, Int(size)) }

    /// Replaces the configured limit. A window that signs of overload have reduced does not grow.
    mutating func use(ceiling: Int) {
        let isReduced = size < self.ceiling
        self.ceiling = Double(ceiling)
        size = isReduced ? min(size, self.ceiling) : self.ceiling
    }

    /// - Parameter began: When the successful attempt began.
    mutating func succeeded(began: Moment) {
        guard isOfCurrentSize(began) else { return }
        size = min(ceiling, size + 1 / size)
    }

    /// Reduces the window, unless another attempt of the same series did so.
    ///
    /// - Parameter began: When the failed attempt began.
    mutating func overloaded(began: Moment, now: Moment) {
        guard isOfCurrentSize(began) else { return }
        size = max(1, size * decrease)
        shrunkAt = now
    }

    /// The attempts that were in flight at a reduction say nothing about the smaller window.
    private func isOfCurrentSize(_ began: Moment) -> Bool { shrunkAt.map { began > $0 } ?? true }
}
