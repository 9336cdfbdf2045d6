internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension TransactionMetrics {
    /// - Parameter clock: Converts the transfer's monotonic times to dates.
    init(_ transfer: TransferMetrics, request: URLRequest, response: HTTPURLResponse?, clock: RequestClock) {
        self.init(request: request, response: response)
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
