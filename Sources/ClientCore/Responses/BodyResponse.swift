public import Foundation
public import FoundationNetworking

/// The response to a request, with the value that a serializer has created from the body.
///
/// `Content` says where the body is: `Data` stands for a body in memory (``DataResponse``), and `URL` for a file
/// (``DownloadResponse``).
public struct BodyResponse<Value, Content: Sendable> {
    /// The value, or the error.
    public let result: Result<Value, any Error>
    let parts: ResponseParts

    /// The request that was sent; `nil` if it could not be created.
    public var request: URLRequest? { parts.request }

    /// The head of the response, even if the body is incomplete; `nil` if no head arrived.
    public var response: HTTPURLResponse? { parts.response?.value }

    /// The times of the request.
    public var timeline: Timeline { parts.timeline }

    /// The metrics of the transfers; `nil` if no request was sent.
    public var metrics: RequestMetrics? { parts.metrics?.value }

    /// The value; `nil` for a failure.
    public var value: Value? { result.value }

    /// The error; `nil` for a success. A status of 4xx or 5xx is an error only if a validator rejects the response.
    public var error: (any Error)? { result.error }
}

extension BodyResponse: Sendable where Value: Sendable {}

/// The response to a request, with the value that a serializer has created from the body in memory.
public typealias DataResponse<Value> = BodyResponse<Value, Data>

/// The response to a download, with the value that a serializer has created from the file.
public typealias DownloadResponse<Value> = BodyResponse<Value, URL>

/// The response to a request, with its body as received.
public typealias DefaultDataResponse = BodyResponse<Void, Data>

/// The response to a download, with the location of its file.
public typealias DefaultDownloadResponse = BodyResponse<Void, URL>

/// The properties of a response that do not depend on a serializer.
struct ResponseParts: Sendable {
    let request: URLRequest?
    let response: LazyResponse?
    let body: ResponseBody
    let timeline: Timeline
    let metrics: LazyMetrics?
}

extension ResponseParts {
    init(
        _ request: URLRequest?,
        _ response: HTTPURLResponse?,
        _ body: ResponseBody,
        _ timeline: Timeline,
        _ metrics: RequestMetrics?
    ) {
        self.init(
            request: request,
            response: response.map { LazyResponse(value: $0) },
            body: body,
            timeline: timeline,
            metrics: metrics.map { LazyMetrics(value: $0) }
        )
    }
}

extension BodyResponse {
    init(_ outcome: RequestOutcome, _ result: Result<Value, any Error>) {
        self.result = result
        parts = ResponseParts(
            request: outcome.request,
            response: outcome.head?.lazyResponse,
            body: outcome.body,
            timeline: outcome.clock.timeline,
            metrics: outcome.metrics
        )
    }
}

extension BodyResponse where Value == Void {
    init(_ outcome: RequestOutcome) {
        self.init(outcome, Result(outcome.error) {})
    }
}

// MARK: Bodies in memory

extension BodyResponse where Content == Data {
    /// The body, as far as it was received. It is empty if no request was sent, and `nil` if a stream closure received
    /// the body.
    public var data: Data? { parts.body.data }

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - result: The value, or the error.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.result = result
        parts = ResponseParts(request, response, ResponseBody(data: data), timeline, metrics)
    }
}

extension BodyResponse where Value == Void, Content == Data {
    /// Creates a response without a serialized value.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The error of the request.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        result = Result(error) {}
        parts = ResponseParts(request, response, ResponseBody(data: data), timeline, metrics)
    }
}

// MARK: Downloaded files

extension BodyResponse where Content == URL {
    /// The file that the body was first written to.
    public var temporaryURL: URL? { parts.body.temporaryURL }

    /// The file that the body was moved to, or should have been moved to if moving it failed; `nil` without a
    /// destination, or if the body was not accepted.
    public var destinationURL: URL? { parts.body.destinationURL }

    /// The data with which the download can be continued later; `nil` if it cannot be continued.
    public var resumeData: Data? { parts.body.resumeData }

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
        let body = ResponseBody(
            temporaryURL: temporaryURL,
            destinationURL: destinationURL,
            resumeData: resumeData
        )
        self.result = result
        parts = ResponseParts(request, response, body, timeline, metrics)
    }
}

extension BodyResponse where Value == Void, Content == URL {
    /// Creates a response without a serialized value.
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
        self.init(
            request: request,
            response: response,
            temporaryURL: temporaryURL,
            destinationURL: destinationURL,
            resumeData: resumeData,
            result: Result(error) {},
            timeline: timeline,
            metrics: metrics
        )
    }
}

// MARK: Mapping

extension BodyResponse {
    /// Returns the response with a transformed value.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func map<T>(_ transform: (Value) -> T) -> BodyResponse<T, Content> {
        BodyResponse<T, Content>(result: result.map(transform), parts: parts)
    }

    /// Returns the response with a transformed value, or with the error that `transform` throws.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> BodyResponse<T, Content> {
        BodyResponse<T, Content>(result: result.flatMap(transform), parts: parts)
    }

    /// Alamofire 5's name for ``flatMap(_:)``.
    public func tryMap<T>(_ transform: (Value) throws -> T) -> BodyResponse<T, Content> {
        flatMap(transform)
    }

    /// Returns the response with a transformed error.
    ///
    /// - Parameter transform: Transforms the error. Not called for a success, which is returned unchanged.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> Self {
        Self(result: result.mapError(transform), parts: parts)
    }

    /// Returns the response with the error that `transform` returns or throws.
    ///
    /// - Parameter transform: Transforms the error. Not called for a success, which is returned unchanged.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        Self(result: result.flatMapError(transform), parts: parts)
    }

    /// Alamofire 5's name for ``flatMapError(_:)``.
    public func tryMapError<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        flatMapError(transform)
    }
}
