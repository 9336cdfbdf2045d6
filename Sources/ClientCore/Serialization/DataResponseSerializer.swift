public import Foundation
public import FoundationNetworking

/// Creates a value from a response's body.
@preconcurrency public protocol DataResponseSerializerProtocol: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// Creates the value from the request, the head of the response, its body, and the error if the response is not
    /// complete. Called once for each handler, on the request's queue.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A closure that creates a value from a response's body.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
    /// The type of the value.
    public typealias SerializedObject = Value

    /// Creates the value. The arguments are the request, the head of the response, the body, and an error if the
    /// response is not complete.
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    {
        didSet { readsHead = true }
    }

    /// Whether the closure uses more of the head than whether there is content.
    private(set) var readsHead = true

    /// Creates a serializer.
    ///
    /// - Parameter serializeResponse: Creates the value from the request, the head of the response, its body, and the
    ///   error if the response is not complete. Called once for each handler, on the request's queue.
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
    /// Creates a serializer that uses nothing of the head except whether the status is 204 or 205.
    ///
    /// - Parameter serialize: Creates the value. It may not receive the head of a response with content.
    static func ofContent(
        _ serialize: @escaping @Sendable (HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    ) -> Self {
        var serializer = Self { serialize($1, $2, $3) }
        serializer.readsHead = false
        return serializer
    }
}

extension DataResponseSerializerProtocol {
    /// Creates the value. Foundation's response object is created only for a serializer that uses it.
    func serialize(_ outcome: RequestOutcome) -> Result<SerializedObject, any Error> {
        let readsHead = (self as? DataResponseSerializer<SerializedObject>)?.readsHead ?? true
        let response = readsHead || outcome.head?.hasNoContent == true ? outcome.response : nil
        return serializeResponse(outcome.request, response, outcome.body.data, outcome.error)
    }
}
