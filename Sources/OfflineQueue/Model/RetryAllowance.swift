/// The number of repeated requests that a claim may take, because retries have a budget.
package struct RetryAllowance: Hashable, Sendable {
    /// The maximum number of requests that were tried before.
    package let count: Int
    /// The time until the budget permits another retry. Requests beyond the maximum are postponed by this time and a
    /// multiple of ``spacing``.
    package let wait: Duration

    /// The time between two postponed requests.
    static let spacing: Duration = .seconds(1)

    package init(count: Int, wait: Duration) {
        self.count = count
        self.wait = wait
    }
}

/// What a claim took, for the budget of retries.
package struct RetryUse: Hashable, Sendable {
    /// The number of first attempts.
    package var firstAttempts = 0
    /// The number of retries, including those of a claim that could take any number.
    package var retries = 0
    /// The number of retries that were reserved for the claim.
    package var reserved = 0
    /// The longest time by which the claim postponed a retry that the budget did not permit; `nil` if it postponed
    /// none.
    package var postponement: Duration?

    package init() {}

    /// - Parameters:
    ///   - allowance: The allowance of the claim; `nil` if nothing was reserved for it.
    ///   - retries: The number of requests that were tried before.
    ///   - postponement: The value of ``postponement``. Default `nil`.
    package init(of allowance: RetryAllowance?, taken: Int, retries: Int, postponement: Duration? = nil) {
        firstAttempts = taken - retries
        self.retries = retries
        reserved = allowance?.count ?? 0
        self.postponement = postponement
    }
}
