internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension RequestCore {
    func record(_ metrics: TransferMetrics, of hop: Hop) {
        if !metrics.reusedConnection, metrics.connected != nil, let address = metrics.remoteAddress {
            context.recordConnection(to: address)
        }
        current.transactions.append(Transaction(metrics: metrics, request: hop.sent, head: hop.head))
    }

    /// Publishes the attempt's metrics, which are computed on first access.
    func publishMetrics() {
        guard !current.transactions.isEmpty else { return }
        let metrics = LazyValue {
            [transactions = current.transactions, redirects = current.redirects, clock = outcome.clock] in
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
