public import Dispatch
public import Foundation
internal import FoundationNetworking

// The response handlers that serialize the downloaded file, and their async variants. They read the whole file into
// memory, unless the program's own serializer does not.

extension DownloadRequest {
    /// Adds a handler for the value that a serializer creates from the downloaded file.
    ///
    /// Serializers run on the request's own queue, in the order in which their handlers were added.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - responseSerializer: Converts the file to a value, or returns an error.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func response<Serializer: DownloadResponseSerializerProtocol>(
        queue: DispatchQueue? = nil,
        responseSerializer: Serializer,
        completionHandler: @escaping @Sendable (DownloadResponse<Serializer.SerializedObject>) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        let serialize = responseSerializer.serializeResponse
        let maximumBytes = self.maximumBytes(for: responseSerializer)
        whenFinished { outcome in
            // `nonisolated(unsafe)` is safe: the value is created here, and only the handler receives it.
            nonisolated(unsafe) let response = DownloadResponse(outcome, maximumBytes, serialize)
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Adds a handler for the file's content.
    ///
    /// An empty file is a success. Only validators check the status.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseData(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadRequest.dataResponseSerializer(),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as text.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - encoding: The text's encoding. Default: the charset of the response's `Content-Type`, or ISO 8859-1.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseString(
        queue: DispatchQueue? = nil,
        encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadRequest.stringResponseSerializer(encoding: encoding),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as JSON: a dictionary, array, string, number or Boolean, or `NSNull`.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - options: Reading options. Default: `.allowFragments`, which accepts any JSON value at the top level.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseJSON(
        queue: DispatchQueue? = nil,
        options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadRequest.jsonResponseSerializer(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as a property list, XML or binary.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - options: Reading options. Default: none, which creates immutable containers.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responsePropertyList(
        queue: DispatchQueue? = nil,
        options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadRequest.propertyListResponseSerializer(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content decoded as a `Decodable` value.
    ///
    /// - Parameters:
    ///   - type: The type to decode. Default: inferred from the handler's parameter.
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseDecodable<Value: Decodable & SendableMetatype>(
        of type: Value.Type = Value.self,
        queue: DispatchQueue? = nil,
        decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DownloadResponse<Value>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadRequest.decodableResponseSerializer(of: type, decoder: decoder),
            completionHandler: completionHandler
        )
    }
}

// MARK: Async

extension DownloadRequest {
    /// Waits for the file and returns the value that a serializer creates from it. Cancelling the waiting task cancels
    /// the request.
    public func response<Serializer: DownloadResponseSerializerProtocol>(
        responseSerializer: Serializer
    ) async -> sending DownloadResponse<Serializer.SerializedObject> {
        let serialize = responseSerializer.serializeResponse
        let maximumBytes = self.maximumBytes(for: responseSerializer)
        return await finished { DownloadResponse($0, maximumBytes, serialize) }
    }

    /// Returns the maximum size of a file that the serializer may read; `nil` for no limit.
    private func maximumBytes(for serializer: some DownloadResponseSerializerProtocol) -> Int? {
        let readsWholeFile = (serializer as? any FileReadingSerializer)?.readsWholeFile ?? false
        return readsWholeFile ? core.options.maximumDataBytes : nil
    }

    /// Waits for the file and returns its content. Cancelling the waiting task cancels the request.
    public func responseData() async -> DownloadResponse<Data> {
        await response(responseSerializer: DownloadRequest.dataResponseSerializer())
    }

    /// Waits for the file and returns its content as text. Cancelling the waiting task cancels the request.
    public func responseString(encoding: String.Encoding? = nil) async -> DownloadResponse<String> {
        await response(responseSerializer: DownloadRequest.stringResponseSerializer(encoding: encoding))
    }

    /// Waits for the file and returns its content as JSON. Cancelling the waiting task cancels the request.
    public func responseJSON(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadRequest.jsonResponseSerializer(options: options))
    }

    /// Waits for the file and returns its content as a property list. Cancelling the waiting task cancels the
    /// request.
    public func responsePropertyList(
        options: PropertyListSerialization.ReadOptions = []
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadRequest.propertyListResponseSerializer(options: options))
    }

    /// Waits for the file and returns its content as a `Decodable` value. Cancelling the waiting task cancels
    /// the request.
    public func responseDecodable<Value: Decodable & SendableMetatype>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async -> DownloadResponse<Value> {
        await response(
            responseSerializer: DownloadRequest.decodableResponseSerializer(of: type, decoder: decoder)
        )
    }

    /// The file's content. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error, or `URLError.dataLengthExceedsMaximum` if the file is longer than
    ///   ``RequestOptions/maximumDataBytes``.
    public var data: Data {
        get async throws { try await responseData().result.get() }
    }

    /// The file's content as text. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error, `URLError.dataLengthExceedsMaximum` if the file is longer than
    ///   ``RequestOptions/maximumDataBytes``, or an error if the content is not text.
    public var string: String {
        get async throws { try await responseString().result.get() }
    }

    /// The file's content as a `Decodable` value. Cancelling the waiting task cancels the request.
    ///
    /// - Parameters:
    ///   - type: The type to decode. Default: inferred from the call.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    /// - Throws: The request's error, `URLError.dataLengthExceedsMaximum` if the file is longer than
    ///   ``RequestOptions/maximumDataBytes``, or the decoder's error.
    public func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async throws -> Value {
        try await responseDecodable(of: type, decoder: decoder).result.get()
    }
}

extension DownloadResponse {
    fileprivate init(
        _ outcome: RequestOutcome,
        _ maximumBytes: Int?,
        _ serialize: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>
    ) {
        let response = outcome.response
        let file = outcome.body.destinationURL ?? outcome.body.temporaryURL
        let error = outcome.error ?? maximumBytes.flatMap { FileContent.excess(of: file, over: $0) }
        let result = serialize(outcome.request, response, file, error)
        self.init(
            request: outcome.request,
            response: response,
            temporaryURL: outcome.body.temporaryURL,
            destinationURL: outcome.body.destinationURL,
            resumeData: outcome.body.resumeData,
            result: result,
            timeline: outcome.clock.timeline,
            metrics: outcome.metrics?.value
        )
    }
}
