public import Foundation
public import FoundationNetworking

/// Creates a value from a downloaded file.
@preconcurrency public protocol DownloadResponseSerializerProtocol: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// Creates the value from the request, the head of the response, the file, and the error if the file is not
    /// complete. Called once for each handler, on the request's queue.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A closure that creates a value from a downloaded file.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
    /// The type of the value.
    public typealias SerializedObject = Value

    /// Creates the value from the request, the head of the response, the file, and the error if the file is not
    /// complete.
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>

    /// Creates a serializer.
    ///
    /// - Parameter serializeResponse: Creates the value from the request, the head of the response, the file, and the
    ///   error if the file is not complete. Called once for each handler, on the request's queue.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }

    /// Creates a serializer that reads the whole file into memory first.
    ///
    /// - Parameter serialize: Creates the value from the head of the response and the contents of the file.
    init(
        reading serialize: @escaping @Sendable (HTTPURLResponse?, Data) -> Result<Value, any Error>
    ) {
        self.init { _, response, file, error in
            if let error { return .failure(error) }
            return FileContent.content(of: file).flatMap { serialize(response, $0) }
        }
    }
}
