public import Foundation

/// What Foundation's `URLSessionTaskMetrics` tells elsewhere, with its names.
public struct RequestMetrics: Sendable {
    /// From the start of the last attempt to its end.
    public let taskInterval: DateInterval
    /// How many redirects were followed.
    public let redirectCount: Int
    /// The transfers of the last attempt, in order: one, and one more for each redirect. What credentials are
    /// negotiated with is part of their transfer, unless the credentials came after it had begun.
    public let transactionMetrics: [TransactionMetrics]

    /// Puts metrics together.
    ///
    /// - Parameters:
    ///   - taskInterval: From the start of the last attempt to its end.
    ///   - redirectCount: How many redirects were followed. Default 0.
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

extension RequestMetrics: CustomStringConvertible {
    /// `0.120 secs, 1 redirect` and a line for each transaction.
    public var description: String {
        let redirects = "\(redirectCount) redirect\(redirectCount == 1 ? "" : "s")"
        let first = "\(String(format: "%.3f", taskInterval.duration)) secs, \(redirects)"
        return ([first] + transactionMetrics.map { "  \($0)" }).joined(separator: "\n")
    }
}
