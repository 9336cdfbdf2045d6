public import Dispatch
public import Foundation

// The response handlers that decode the downloaded file, and their async variants.

extension DownloadRequest {
    /// Adds a handler for the file's content.
    ///
    /// An empty body is a success. The status is not checked.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseData(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadResponseSerializer<Data>.data(),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as text.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - encoding: The text's encoding. Default: the response's charset, or ISO 8859-1.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseString(
        queue: DispatchQueue? = nil,
        encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadResponseSerializer<String>.string(encoding: encoding),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as JSON: dictionaries, arrays, numbers, strings, `NSNull`.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - options: Reading options. Default: allow fragments, so that the top-level value may be of any kind.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseJSON(
        queue: DispatchQueue? = nil,
        options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadResponseSerializer<Any>.json(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content as a property list, XML or binary.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - options: Reading options. Default: none, so that containers are immutable.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func responsePropertyList(
        queue: DispatchQueue? = nil,
        options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DownloadResponseSerializer<Any>.propertyList(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the file's content decoded as a `Decodable` value.
    ///
    /// - Parameters:
    ///   - type: The type to decode. Default: the type that the handler accepts.
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    ///   - completionHandler: Called exactly once.
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
            responseSerializer: DownloadResponseSerializer<Value>.decodable(decoder: decoder),
            completionHandler: completionHandler
        )
    }
}

// MARK: Async

extension DownloadRequest {
    /// Waits for the file and returns its content. Cancelling the waiting task cancels the request.
    public func responseData() async -> DownloadResponse<Data> {
        await response(responseSerializer: DownloadResponseSerializer<Data>.data())
    }

    /// Waits for the file and returns its content as text. Cancelling the waiting task cancels the request.
    public func responseString(encoding: String.Encoding? = nil) async -> DownloadResponse<String> {
        await response(responseSerializer: DownloadResponseSerializer<String>.string(encoding: encoding))
    }

    /// Waits for the file and returns its content as JSON. Cancelling the waiting task cancels the request.
    public func responseJSON(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadResponseSerializer<Any>.json(options: options))
    }

    /// Waits for the file and returns its content as a property list. Cancelling the waiting task cancels the
    /// request.
    public func responsePropertyList(
        options: PropertyListSerialization.ReadOptions = []
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadResponseSerializer<Any>.propertyList(options: options))
    }

    /// Waits for the file and returns its content as a `Decodable` value. Cancelling the waiting task cancels
    /// the request.
    public func responseDecodable<Value: Decodable & SendableMetatype>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async -> DownloadResponse<Value> {
        await response(responseSerializer: DownloadResponseSerializer<Value>.decodable(decoder: decoder))
    }

    /// The file's content. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error.
    public var data: Data {
        get async throws { try await responseData().result.get() }
    }

    /// The file's content as text. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error, or an error if the content is not text.
    public var string: String {
        get async throws { try await responseString().result.get() }
    }

    /// The file's content as a `Decodable` value. Cancelling the waiting task cancels the request.
    ///
    /// - Parameters:
    ///   - type: The type to decode. Default: inferred from the call.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    /// - Throws: The request's error, or the decoder's.
    public func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async throws -> Value {
        try await responseDecodable(of: type, decoder: decoder).result.get()
    }
}
