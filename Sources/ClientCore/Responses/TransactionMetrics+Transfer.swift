internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// A finished transfer of a request.
struct Transaction: Sendable {
    let metrics: TransferMetrics
    /// The request as it was sent.
    let request: URLRequest
    let head: ResponseHead?
}

extension TransactionMetrics {
    /// - Parameter clock: Converts the transfer's monotonic times to dates.
    init(_ transaction: Transaction, clock: RequestClock) {
        self.init(request: transaction.request, response: transaction.head?.response)
        let transfer = transaction.metrics
        let date = { (elapsed: Duration?) in elapsed.flatMap { clock.date(of: transfer.startedAt + $0) } }
        fetchStartDate = date(.zero)
        if transfer.lookupEnded != nil { domainLookupStartDate = fetchStartDate }
        domainLookupEndDate = date(transfer.lookupEnded)
        connectStartDate = transfer.connected.flatMap { _ in date(transfer.lookupEnded ?? .zero) }
        secureConnectionStartDate = transfer.tlsEnded.flatMap { _ in date(transfer.connected) }
        secureConnectionEndDate = date(transfer.tlsEnded)
        connectEndDate = secureConnectionEndDate ?? date(transfer.connected)
        requestStartDate = date(transfer.requestReady)
        requestEndDate = date(transfer.requestSent)
        responseStartDate = date(transfer.firstByte)
        responseEndDate = transfer.firstByte.flatMap { _ in date(transfer.ended) }
        networkProtocolName = transfer.httpVersion
        isReusedConnection = transfer.reusedConnection
        localAddress = transfer.localAddress
        localPort = transfer.localPort
        remoteAddress = transfer.remoteAddress
        remotePort = transfer.remotePort
        countOfRequestHeaderBytesSent = transfer.requestHeaderBytes
        countOfRequestBodyBytesSent = transfer.requestBodyBytes
        countOfResponseHeaderBytesReceived = transfer.responseHeaderBytes
        countOfResponseBodyBytesReceived = transfer.responseBodyBytes
    }
}
