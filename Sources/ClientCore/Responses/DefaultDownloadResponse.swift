public import Foundation
public import FoundationNetworking

/// The response to a download, with the location of its file.
public struct DefaultDownloadResponse: Sendable {
    /// The request that was sent; `nil` if it could not be created.
    public let request: URLRequest?
    /// The head of the response, even if the body is incomplete; `nil` if no head arrived.
    public let response: HTTPURLResponse?
    /// The file that the body was first written to.
    public let temporaryURL: URL?
    /// The file that the body was moved to, or should have been moved to if moving it failed; `nil` without a
    /// destination, or if the body was not accepted.
    public let destinationURL: URL?
    /// The data with which the download can be continued later; `nil` if it cannot be continued.
    public let resumeData: Data?
    /// The error of the request; `nil` for a success. A status of 4xx or 5xx is an error only if a validator rejects
    /// the response.
    public let error: (any Error)?
    /// The times of the request.
    public let timeline: Timeline
    /// The metrics of the transfers; `nil` if no request was sent.
    public let metrics: RequestMetrics?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - temporaryURL: The file that the body was first written to.
    ///   - destinationURL: The file that the body was moved to.
    ///   - resumeData: The data with which the download can be continued later.
    ///   - error: The error of the request.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        temporaryURL: URL?,
        destinationURL: URL?,
        resumeData: Data?,
        error: (any Error)?,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        self.response = response
        self.temporaryURL = temporaryURL
        self.destinationURL = destinationURL
        self.resumeData = resumeData
        self.error = error
        self.timeline = timeline
        self.metrics = metrics
    }
}
