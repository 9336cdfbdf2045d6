internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension RequestCore {
    func record(_ metrics: TransferMetrics, of hop: Hop) {
        if !metrics.reusedConnection, metrics.connected != nil, let address = metrics.remoteAddress {
            context.connectionMade(to: address)
        }
        transactions.append(
            TransactionMetrics(
                metrics,
                request: hop.sent,
                response: hop.head?.response,
                clock: outcome.clock
            )
        )
    }

    func publishMetrics() {
        guard let first = transactions.first?.fetchStartDate else { return }
        let end = max(first, transactions.last?.responseEndDate ?? first)
        let metrics = RequestMetrics(
            taskInterval: DateInterval(start: first, end: end),
            redirectCount: redirects,
            transactionMetrics: transactions
        )
        outcome.metrics = metrics
        snapshot.change { $0.metrics = metrics }
    }
}
