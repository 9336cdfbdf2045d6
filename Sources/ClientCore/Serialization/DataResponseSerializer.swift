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
    {
        didSet { readsHead = true }
    }

    /// Whether it looks at more of a head than whether there is no content.
    private(set) var readsHead = true

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

extension DataResponseSerializer {
    /// One that looks at nothing of a head but whether the status is 204 or 205.
    ///
    /// - Parameter serialize: As above. It may not be given the head of a response with content.
    static func ofContent(
        _ serialize: @escaping @Sendable (HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    ) -> Self {
        var serializer = Self { serialize($1, $2, $3) }
        serializer.readsHead = false
        return serializer
    }
}

extension DataResponseSerializerProtocol {
    /// Makes the value. Foundation's head is made only for a serializer that looks at it.
    func serialize(_ outcome: RequestOutcome) -> Result<SerializedObject, any Error> {
        let readsHead = (self as? DataResponseSerializer<SerializedObject>)?.readsHead ?? true
        let response = readsHead || outcome.head?.hasNoContent == true ? outcome.response : nil
        return serializeResponse(outcome.request, response, outcome.body.data, outcome.error)
    }
}
