package import Foundation
package import NetwatchTransport

/// The response with which a ``FailedRequestOwner`` finishes a failed request.
package struct OwnerResponse: Sendable {
    /// The URL of the response: the requested URL, or the last one after redirects.
    package var url: URL
    package var head: TransferHead
    package var body: Data
    /// The metrics of the response; `nil` keeps the metrics of the request's last attempt.
    package var metrics: RequestMetrics?

    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - head: The status and the header fields.
    ///   - body: The decoded body. Default empty.
    ///   - metrics: The metrics of the response. Default `nil`: the metrics of the request's last attempt are kept.
    package init(url: URL, head: TransferHead, body: Data = Data(), metrics: RequestMetrics? = nil) {
        self.url = url
        self.head = head
        self.body = body
        self.metrics = metrics
    }
}
