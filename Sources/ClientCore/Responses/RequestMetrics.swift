public import Foundation

/// The metrics of an attempt, which are computed on first access.
typealias LazyMetrics = LazyValue<RequestMetrics.Source, RequestMetrics?>

/// The metrics of a request, with the names of Foundation's `URLSessionTaskMetrics`.
public struct RequestMetrics: Sendable {
    /// The interval from the start to the end of the last attempt.
    public let taskInterval: DateInterval
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// The transfers of the last attempt, in order. After the first transfer, there is another one for each redirect
    /// that was followed, for each range of a resumed download that the server rejected, and for each answered
    /// challenge to a transfer without credentials. If a transfer has credentials from its start, libcurl itself
    /// answers challenges, and the transfer contains all requests that libcurl sends.
    public let transactionMetrics: [TransactionMetrics]

    /// Creates metrics.
    ///
    /// - Parameters:
    ///   - taskInterval: The interval from the start to the end of the last attempt.
    ///   - redirectCount: The number of redirects that were followed. Default 0.
    ///   - transactionMetrics: The transfers of the last attempt, in order. Default none.
    public init(
        taskInterval: DateInterval,
        redirectCount: Int = 0,
        transactionMetrics: [TransactionMetrics] = []
    ) {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.transactionMetrics = transactionMetrics
    }
}

extension RequestMetrics {
    /// What the metrics of an attempt are computed from: its transfers, the number of redirects that were followed, and
    /// the clock that converts monotonic times to dates.
    typealias Source = (transactions: [Transaction], redirects: Int, clock: RequestClock)

    /// Returns `nil` if there are no transactions, or if their times cannot be converted to dates.
    ///
    /// - Parameter clock: Converts the monotonic times to dates.
    init?(_ transactions: [Transaction], redirects: Int, clock: RequestClock) {
        let all = transactions.map { TransactionMetrics($0, clock: clock) }
        guard let first = all.first?.fetchStartDate else { return nil }
        let end = max(first, all.last?.responseEndDate ?? first)
        self.init(
            taskInterval: DateInterval(start: first, end: end),
            redirectCount: redirects,
            transactionMetrics: all
        )
    }
}

extension RequestMetrics: CustomStringConvertible {
    /// The duration and the number of redirects, for example `0.120 secs, 1 redirect`, and a line for each transfer.
    public var description: String {
        let redirects = "\(redirectCount) redirect\(redirectCount == 1 ? "" : "s")"
        let first = "\(String(format: "%.3f", taskInterval.duration)) secs, \(redirects)"
        return ([first] + transactionMetrics.map { "  \($0)" }).joined(separator: "\n")
    }
}
