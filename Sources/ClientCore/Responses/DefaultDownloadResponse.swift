public import Foundation
public import FoundationNetworking

/// The response to a download, without serialization.
public struct DefaultDownloadResponse: Sendable {
    /// The request that was sent; `nil` if none could be created.
    public let request: URLRequest?
    /// The head of the response, even if the rest did not arrive.
    public let response: HTTPURLResponse?
    /// The file that the body was first written to.
    public let temporaryURL: URL?
    /// The file that the body was moved to; `nil` without a destination.
    public let destinationURL: URL?
    /// The data with which the download can be continued later; `nil` if it cannot be continued.
    public let resumeData: Data?
    /// The error if the file is not complete. A status of 4xx or 5xx is not an error.
    public let error: (any Error)?
    /// The times of the request.
    public let timeline: Timeline
    /// Details of the transfers; `nil` if nothing was sent.
    public let metrics: RequestMetrics?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - temporaryURL: The file that the body was first written to.
    ///   - destinationURL: The file that the body was moved to.
    ///   - resumeData: The data with which the download can be continued later.
    ///   - error: The error if the file is not complete.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: Details of the transfers. Default `nil`.
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
