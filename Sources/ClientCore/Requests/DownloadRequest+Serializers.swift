public import Dispatch
public import Foundation

// The handlers that make a value of a downloaded file, and the same for callers that wait.

extension DownloadRequest {
    /// Adds a handler for the file's content.
    ///
    /// An empty body is a success. The status is not looked at.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
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
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - encoding: The text's encoding. Default: the one that the response names, or ISO 8859-1.
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

    /// Adds a handler for the file's content as JSON: dictionaries, arrays, numbers, texts, `NSNull`.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - options: How it is read. Default: values of any kind at the top.
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
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - options: How it is read. Default: immutable.
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

    /// Adds a handler for the file's content as a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type. Default: what the handler takes.
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - decoder: Who decodes it. Default: a `JSONDecoder`.
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

// MARK: For callers that wait

extension DownloadRequest {
    /// Waits for the file's content. Cancelling the waiting task cancels the request.
    public func responseData() async -> DownloadResponse<Data> {
        await response(responseSerializer: DownloadResponseSerializer<Data>.data())
    }

    /// Waits for the file's content as text. Cancelling the waiting task cancels the request.
    public func responseString(encoding: String.Encoding? = nil) async -> DownloadResponse<String> {
        await response(responseSerializer: DownloadResponseSerializer<String>.string(encoding: encoding))
    }

    /// Waits for the file's content as JSON. Cancelling the waiting task cancels the request.
    public func responseJSON(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadResponseSerializer<Any>.json(options: options))
    }

    /// Waits for the file's content as a property list. Cancelling the waiting task cancels the request.
    public func responsePropertyList(
        options: PropertyListSerialization.ReadOptions = []
    ) async -> sending DownloadResponse<Any> {
        await response(responseSerializer: DownloadResponseSerializer<Any>.propertyList(options: options))
    }

    /// Waits for the file's content as a value of a type. Cancelling the waiting task cancels the request.
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
    /// - Throws: The request's error, or why the body is no text.
    public var string: String {
        get async throws { try await responseString().result.get() }
    }

    /// The file's content as a value of a type. Cancelling the waiting task cancels the request.
    ///
    /// - Parameters:
    ///   - type: The type. Default: what is expected of the call.
    ///   - decoder: Who decodes it. Default: a `JSONDecoder`.
    /// - Throws: The request's error, or why the body is no such value.
    public func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async throws -> Value {
        try await responseDecodable(of: type, decoder: decoder).result.get()
    }
}
