public import Dispatch
public import Foundation

// The response handlers that serialize the body, and their async variants. Those of a download read the whole file into
// memory, unless the program's own serializer does not.

extension BodyRequest {
    /// Adds a handler for the value that a serializer creates from the response.
    ///
    /// Serializers run on the request's own queue, in the order in which their handlers were added.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - responseSerializer: Converts the response to a value, or returns an error.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func response<Serializer: BodySerializerProtocol>(
        queue: DispatchQueue? = nil,
        responseSerializer: Serializer,
        completionHandler: @escaping @Sendable (BodyResponse<Serializer.SerializedObject, Content>) -> Void
    ) -> Self where Serializer.ResponseContent == Content {
        deliver(on: queue, serialization(by: responseSerializer), to: completionHandler)
    }

    /// Adds a handler for the response's body.
    ///
    /// An empty body is a success, for a download an empty file. Only validators check the status.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseData(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (BodyResponse<Data, Content>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: Self.dataResponseSerializer(),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the response's body as text.
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
        completionHandler: @escaping @Sendable (BodyResponse<String, Content>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: Self.stringResponseSerializer(encoding: encoding),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the response's body as JSON: a dictionary, array, string, number or Boolean, or `NSNull`.
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
        completionHandler: @escaping @Sendable (BodyResponse<Any, Content>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: Self.jsonResponseSerializer(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the response's body as a property list, XML or binary.
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
        completionHandler: @escaping @Sendable (BodyResponse<Any, Content>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: Self.propertyListResponseSerializer(options: options),
            completionHandler: completionHandler
        )
    }

    /// Adds a handler for the response's body decoded as a `Decodable` value.
    ///
    /// ```swift
    /// struct Note: Decodable, Sendable {
    ///     let title: String
    /// }
    ///
    /// session.request("https://example.com/notes/1").validate().responseDecodable(of: Note.self) { response in
    ///     switch response.result {
    ///     case .success(let note): print(note.title)
    ///     case .failure(let error): print(error.localizedDescription)
    ///     }
    /// }
    /// ```
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
        completionHandler: @escaping @Sendable (BodyResponse<Value, Content>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: Self.decodableResponseSerializer(of: type, decoder: decoder),
            completionHandler: completionHandler
        )
    }
}

// MARK: Async

extension BodyRequest {
    /// Waits for the response and returns the value that a serializer creates from it. Cancelling the waiting task
    /// cancels the request.
    public func response<Serializer: BodySerializerProtocol>(
        responseSerializer: Serializer
    ) async -> sending BodyResponse<Serializer.SerializedObject, Content>
    where Serializer.ResponseContent == Content {
        await finished(serialization(by: responseSerializer))
    }

    private func serialization<Serializer: BodySerializerProtocol>(
        by serializer: Serializer
    ) -> @Sendable (RequestOutcome) -> BodyResponse<Serializer.SerializedObject, Content> {
        let maximumBytes = core.options.maximumDataBytes
        return { BodyResponse($0, serializer.serialize($0, maximumBytes: maximumBytes)) }
    }

    /// Waits for the response and returns its body. Cancelling the waiting task cancels the request.
    public func responseData() async -> BodyResponse<Data, Content> {
        await response(responseSerializer: Self.dataResponseSerializer())
    }

    /// Waits for the response and returns its body as text. Cancelling the waiting task cancels the request.
    public func responseString(encoding: String.Encoding? = nil) async -> BodyResponse<String, Content> {
        await response(responseSerializer: Self.stringResponseSerializer(encoding: encoding))
    }

    /// Waits for the response and returns its body as JSON. Cancelling the waiting task cancels the request.
    public func responseJSON(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) async -> sending BodyResponse<Any, Content> {
        await response(responseSerializer: Self.jsonResponseSerializer(options: options))
    }

    /// Waits for the response and returns its body as a property list. Cancelling the waiting task cancels the
    /// request.
    public func responsePropertyList(
        options: PropertyListSerialization.ReadOptions = []
    ) async -> sending BodyResponse<Any, Content> {
        await response(responseSerializer: Self.propertyListResponseSerializer(options: options))
    }

    /// Waits for the response and returns its body as a `Decodable` value. Cancelling the waiting task cancels
    /// the request.
    public func responseDecodable<Value: Decodable & SendableMetatype>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async -> BodyResponse<Value, Content> {
        await response(
            responseSerializer: Self.decodableResponseSerializer(of: type, decoder: decoder)
        )
    }

    /// The response's body. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error, or `URLError.dataLengthExceedsMaximum` if a downloaded file is longer than
    ///   ``RequestOptions/maximumDataBytes``.
    public var data: Data {
        get async throws { try await responseData().result.get() }
    }

    /// The response's body as text. Cancelling the waiting task cancels the request.
    ///
    /// - Throws: The request's error, `URLError.dataLengthExceedsMaximum` if a downloaded file is longer than
    ///   ``RequestOptions/maximumDataBytes``, or an error if the body is not text.
    public var string: String {
        get async throws { try await responseString().result.get() }
    }

    /// The response's body as a `Decodable` value. Cancelling the waiting task cancels the request.
    ///
    /// ```swift
    /// let counts = try await session.request("https://example.com/counts")
    ///     .validate()
    ///     .decodable(of: [String: Int].self)
    /// print(counts["notes"] ?? 0)
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode. Default: inferred from the call.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    /// - Throws: The request's error, `URLError.dataLengthExceedsMaximum` if a downloaded file is longer than
    ///   ``RequestOptions/maximumDataBytes``, or the decoder's error.
    public func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self,
        decoder: any DataDecoder = JSONDecoder()
    ) async throws -> Value {
        try await responseDecodable(of: type, decoder: decoder).result.get()
    }
}
