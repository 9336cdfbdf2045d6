/// What a transfer reports, in this order: at most one head, any number of chunks, exactly one end.
package enum TransferEvent: Sendable {
    case head(TransferHead)
    case body([UInt8])
    case end(Result<TransferSummary, TransferFailure>)
}

/// The head of a final response. Interim ones (1xx) are not reported.
package struct TransferHead: Hashable, Sendable {
    package let status: Int
    /// As the server wrote it: `HTTP/1.1`, `HTTP/2`.
    package let version: String
    /// In the order they came, names as the server wrote them.
    package let headers: [TransferRequest.Header]

    package init(status: Int, version: String, headers: [TransferRequest.Header]) {
        self.status = status
        self.version = version
        self.headers = headers
    }
}

/// What a transfer that ended well cost. Times are since its start, as `curl_easy_getinfo(3)` has them;
/// a phase that a reused connection skips is zero.
package struct TransferSummary: Hashable, Sendable {
    /// When the address was known. The lookup is ours, so this contains libcurl's own time only.
    package let nameLookup: Duration
    package let connect: Duration
    package let tls: Duration
    package let firstByte: Duration
    package let total: Duration
    package let bytesSent: Int64
    /// The body's bytes as they came over the wire.
    package let bytesReceived: Int64
    package let reusedConnection: Bool
}
