package import Foundation
package import NetwatchTransport

/// The response that somebody else has got for a request.
package struct OwnerResponse: Sendable {
    /// Where it came from: the URL asked for, or the last one that a redirect led to.
    package var url: URL
    package var head: TransferHead
    package var body: Data
    /// What it cost; `nil` leaves those of the request's own last attempt.
    package var metrics: RequestMetrics?

    /// - Parameters:
    ///   - url: Where it came from.
    ///   - head: Its status and fields.
    ///   - body: Its body, decoded. Default empty.
    ///   - metrics: What it cost. Default `nil`: those of the request's own last attempt stay.
    package init(url: URL, head: TransferHead, body: Data = Data(), metrics: RequestMetrics? = nil) {
        self.url = url
        self.head = head
        self.body = body
        self.metrics = metrics
    }
}
