internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A finished transfer of an attempt.
struct Transaction: Sendable {
    let metrics: TransferMetrics
    /// The request as it was sent.
    let request: URLRequest
    let head: ResponseHead?
}

extension RequestCore {
    func record(_ metrics: TransferMetrics, of hop: Hop) {
        if !metrics.reusedConnection, metrics.connected != nil, let address = metrics.remoteAddress {
            context.connectionMade(to: address)
        }
        transactions.append(Transaction(metrics: metrics, request: hop.sent, head: hop.head))
    }

    /// Publishes the attempt's metrics. They are computed on first access.
    func publishMetrics() {
        guard !transactions.isEmpty else { return }
        let metrics = OnDemand { [transactions, redirects, clock = outcome.clock] in
            RequestMetrics(transactions, redirects: redirects, clock: clock)
        }
        outcome.metrics = metrics
        snapshot.change { $0.metrics = metrics }
    }
}

extension RequestMetrics {
    fileprivate init?(_ transactions: [Transaction], redirects: Int, clock: RequestClock) {
        let all = transactions.map { transaction in
            TransactionMetrics(
                transaction.metrics,
                request: transaction.request,
                response: transaction.head?.response,
                clock: clock
            )
        }
        guard let first = all.first?.fetchStartDate else { return nil }
        let end = max(first, all.last?.responseEndDate ?? first)
        self.init(
            taskInterval: DateInterval(start: first, end: end),
            redirectCount: redirects,
            transactionMetrics: all
        )
    }
}
