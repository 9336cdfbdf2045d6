public import Foundation
public import FoundationNetworking

/// The response to a download, with the value that a serializer has created from the file.
public struct DownloadResponse<Value> {
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
    /// The value, or the error.
    public let result: Result<Value, any Error>
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
    ///   - result: The value, or the error.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        temporaryURL: URL?,
        destinationURL: URL?,
        resumeData: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        self.response = response
        self.temporaryURL = temporaryURL
        self.destinationURL = destinationURL
        self.resumeData = resumeData
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// The value; `nil` for a failure.
    public var value: Value? { result.value }

    /// The error; `nil` for a success.
    public var error: (any Error)? { result.error }
}

extension DownloadResponse: Sendable where Value: Sendable {}

extension DownloadResponse {
    func with<T>(_ result: Result<T, any Error>) -> DownloadResponse<T> {
        DownloadResponse<T>(
            request: request,
            response: response,
            temporaryURL: temporaryURL,
            destinationURL: destinationURL,
            resumeData: resumeData,
            result: result,
            timeline: timeline,
            metrics: metrics
        )
    }
}
