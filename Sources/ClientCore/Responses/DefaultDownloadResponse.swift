public import Foundation
public import FoundationNetworking

/// What came of a download, as it is.
public struct DefaultDownloadResponse: Sendable {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public let response: HTTPURLResponse?
    /// The file that the body was written to at first.
    public let temporaryURL: URL?
    /// The file that the body was moved to; `nil` without a destination.
    public let destinationURL: URL?
    /// What continues the download later; `nil` when nothing can.
    public let resumeData: Data?
    /// Why there is no whole file. A status of 4xx or 5xx is none.
    public let error: (any Error)?
    /// When what happened.
    public let timeline: Timeline
    /// What the transfer was, in detail; `nil` when nothing was sent.
    public let metrics: RequestMetrics?

    /// Puts a response together.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - temporaryURL: The file that the body was written to at first.
    ///   - destinationURL: The file that the body was moved to.
    ///   - resumeData: What continues the download later.
    ///   - error: Why there is no whole file.
    ///   - timeline: When what happened. Default: all of it at 0.
    ///   - metrics: What the transfer was. Default `nil`.
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
