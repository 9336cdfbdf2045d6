public import Foundation
public import FoundationNetworking

/// A type that creates a value from the body of a response.
@preconcurrency public protocol DataResponseSerializerProtocol: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// A closure that creates the value. Called once for each handler, on the request's queue.
    ///
    /// The arguments are the request, the head of the response, its body, and the request's error, which is `nil` for a
    /// success. All may be `nil`.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A serializer that calls a closure to create a value from the body of a response.
///
/// ```swift
/// let lines = DataResponseSerializer<[String]> { _, _, data, error in
///     if let error { return .failure(error) }
///     return .success(String(decoding: data ?? Data(), as: UTF8.self).components(separatedBy: "\n"))
/// }
/// let response = await session.request("https://example.com/log").response(responseSerializer: lines)
/// print(response.result)
/// ```
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
    /// The type of the value.
    public typealias SerializedObject = Value

    /// The closure that creates the value. The arguments are the request, the head of the response, its body, and the
    /// request's error, which is `nil` for a success.
    @preconcurrency
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    {
        didSet { readsHead = true }
    }

    /// Whether the closure needs the head of every response. `false`: it needs only a head with the status 204 or 205.
    private(set) var readsHead = true

    /// Creates a serializer.
    ///
    /// - Parameter serializeResponse: Creates the value from the request, the head of the response, its body, and the
    ///   request's error, which is `nil` for a success. Called once for each handler, on the request's queue.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }
}

extension DataResponseSerializer {
    /// Returns a serializer that uses the head of the response only to detect the statuses 204 and 205.
    ///
    /// - Parameter serialize: Creates the value. For other statuses, it may receive `nil` instead of the head.
    static func ofContent(
        _ serialize: @escaping @Sendable (HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    ) -> Self {
        var serializer = Self { serialize($1, $2, $3) }
        serializer.readsHead = false
        return serializer
    }
}

extension DataResponseSerializerProtocol {
    /// Returns the value for an outcome. Creates Foundation's response object only if the serializer uses it.
    func serialize(_ outcome: RequestOutcome) -> Result<SerializedObject, any Error> {
        let readsHead = (self as? DataResponseSerializer<SerializedObject>)?.readsHead ?? true
        let response = readsHead || outcome.head?.hasNoContent == true ? outcome.response : nil
        return serializeResponse(outcome.request, response, outcome.body.data, outcome.error)
    }
}
