public import Foundation
public import FoundationNetworking

/// Something that makes a value of a downloaded file.
@preconcurrency public protocol DownloadResponseSerializerProtocol: Sendable {
    /// What is made.
    associatedtype SerializedObject

    /// Makes the value of the request, the head of the response, the file, and why it is not whole. It is
    /// called once for each handler, on a thread of the request's.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A closure that makes a value of a downloaded file.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
    /// What is made.
    public typealias SerializedObject = Value

    /// Makes the value of the request, the head of the response, the file, and why it is not whole.
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>

    /// Makes a serializer.
    ///
    /// - Parameter serializeResponse: Makes the value of the request, the head of the response, the file,
    ///   and why it is not whole. It is called once for each handler, on a thread of the request's.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }

    /// Makes a serializer that reads the whole file into memory first.
    ///
    /// - Parameter serialize: Makes the value of the head of the response and the file's content.
    init(
        reading serialize: @escaping @Sendable (HTTPURLResponse?, Data) -> Result<Value, any Error>
    ) {
        self.init { _, response, file, error in
            if let error { return .failure(error) }
            return FileContent.content(of: file).flatMap { serialize(response, $0) }
        }
    }
}
