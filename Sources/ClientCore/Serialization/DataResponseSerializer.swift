public import Foundation
public import FoundationNetworking

/// Something that makes a value of a response's body.
@preconcurrency public protocol DataResponseSerializerProtocol: Sendable {
    /// What is made.
    associatedtype SerializedObject

    /// Makes the value of the request, the head of the response, its body, and why it is not whole. It is
    /// called once for each handler, on a thread of the request's.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A closure that makes a value of a response's body.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
    /// What is made.
    public typealias SerializedObject = Value

    /// Makes the value of the request, the head of the response, its body, and why it is not whole.
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>

    /// Makes a serializer.
    ///
    /// - Parameter serializeResponse: Makes the value of the request, the head of the response, its body,
    ///   and why it is not whole. It is called once for each handler, on a thread of the request's.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }
}
