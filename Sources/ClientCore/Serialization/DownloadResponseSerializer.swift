public import Foundation
public import FoundationNetworking

/// A type that creates a value from a downloaded file.
@preconcurrency public protocol DownloadResponseSerializerProtocol: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// A closure that creates the value. Called once for each handler, on the request's queue.
    ///
    /// The arguments are the request, the head of the response, the file, and the request's error, which is `nil` for a
    /// success. All may be `nil`.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject, any Error>
    { get }
}

/// A serializer that calls a closure to create a value from a downloaded file.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
    /// The type of the value.
    public typealias SerializedObject = Value

    /// The closure that creates the value. The arguments are the request, the head of the response, the file, and the
    /// request's error, which is `nil` for a success.
    @preconcurrency
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>
    {
        didSet { readsWholeFile = false }
    }

    /// Whether the serializer reads the whole file into memory.
    private(set) var readsWholeFile = false

    /// Creates a serializer.
    ///
    /// - Parameter serializeResponse: Creates the value from the request, the head of the response, the file, and the
    ///   request's error, which is `nil` for a success. Called once for each handler, on the request's queue.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }

    /// Creates a serializer that reads the whole file into memory before it calls `serialize`.
    ///
    /// - Parameter serialize: Creates the value from the head of the response and the contents of the file.
    init(
        reading serialize: @escaping @Sendable (HTTPURLResponse?, Data) -> Result<Value, any Error>
    ) {
        self.init { _, response, file, error in
            if let error { return .failure(error) }
            return FileContent.content(of: file).flatMap { serialize(response, $0) }
        }
        readsWholeFile = true
    }
}

/// A serializer to whose files the program can apply ``RequestOptions/maximumDataBytes``.
protocol FileReadingSerializer {
    var readsWholeFile: Bool { get }
}

extension DownloadResponseSerializer: FileReadingSerializer {}
