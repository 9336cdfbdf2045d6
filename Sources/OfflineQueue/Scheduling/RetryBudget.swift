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
