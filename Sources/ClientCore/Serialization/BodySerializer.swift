public import Foundation
public import FoundationNetworking
internal import Glibc
internal import NetwatchTransport

/// A type that creates a value from the body of a response. Conform to ``DataResponseSerializerProtocol`` or
/// ``DownloadResponseSerializerProtocol``.
@preconcurrency public protocol BodySerializerProtocol: Sendable {
    /// The type of the value.
    associatedtype SerializedObject
    /// The type of the body: `Data`, or the `URL` of a file.
    associatedtype ResponseContent: Sendable

    /// A closure that creates the value. Called once for each handler, on the request's queue.
    ///
    /// The arguments are the request, the head of the response, its body, and the request's error, which is `nil` for a
    /// success. All may be `nil`.
    var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, ResponseContent?, (any Error)?) ->
            Result<SerializedObject, any Error>
    { get }
}

/// A type that creates a value from the body of a response.
@preconcurrency public protocol DataResponseSerializerProtocol: BodySerializerProtocol
where ResponseContent == Data {}

/// A type that creates a value from a downloaded file.
@preconcurrency public protocol DownloadResponseSerializerProtocol: BodySerializerProtocol
where ResponseContent == URL {}

/// A serializer that calls a closure to create a value from the body of a response.
///
/// `Content` is the type of the body: `Data` for a ``DataRequest``, or the `URL` of the file for a ``DownloadRequest``.
///
/// ```swift
/// let lines = DataResponseSerializer<[String]> { _, _, data, error in
///     if let error { return .failure(error) }
///     return .success(String(decoding: data ?? Data(), as: UTF8.self).components(separatedBy: "\n"))
/// }
/// let response = await session.request("https://example.com/log").response(responseSerializer: lines)
/// print(response.result)
/// ```
public struct BodySerializer<Value, Content: Sendable>: BodySerializerProtocol {
    /// The type of the value.
    public typealias SerializedObject = Value

    /// The closure that creates the value. The arguments are the request, the head of the response, its body, and the
    /// request's error, which is `nil` for a success.
    @preconcurrency
    public var serializeResponse:
        @Sendable (URLRequest?, HTTPURLResponse?, Content?, (any Error)?) -> Result<Value, any Error>
    {
        didSet { (readsHead, readsWholeFile) = (true, false) }
    }

    /// Whether the closure needs the head of every response. `false`: it needs only a head with the status 204 or 205.
    fileprivate var readsHead = true
    /// Whether the closure reads the whole file of a download into memory.
    fileprivate var readsWholeFile = false

    /// Creates a serializer.
    ///
    /// - Parameter serializeResponse: Creates the value from the request, the head of the response, its body, and the
    ///   request's error, which is `nil` for a success. Called once for each handler, on the request's queue.
    @preconcurrency
    public init(
        serializeResponse:
            @escaping @Sendable (URLRequest?, HTTPURLResponse?, Content?, (any Error)?) ->
            Result<Value, any Error>
    ) {
        self.serializeResponse = serializeResponse
    }
}

extension BodySerializer: DataResponseSerializerProtocol where Content == Data {}

extension BodySerializer: DownloadResponseSerializerProtocol where Content == URL {}

/// A serializer that calls a closure to create a value from the body of a response.
public typealias DataResponseSerializer<Value> = BodySerializer<Value, Data>

/// A serializer that calls a closure to create a value from a downloaded file.
public typealias DownloadResponseSerializer<Value> = BodySerializer<Value, URL>

extension BodySerializer {
    /// Returns a serializer that reads a downloaded file into memory before it calls `serialize`.
    ///
    /// - Parameters:
    ///   - readsHead: Whether `serialize` needs the head of every response. Default: `false`; for statuses other than
    ///     204 and 205, it may receive `nil` instead of the head.
    ///   - serialize: Creates the value from the head of the response, the bytes of the body, and the request's error.
    static func ofBytes(
        readsHead: Bool = false,
        _ serialize: @escaping @Sendable (HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    ) -> Self {
        var serializer = Self { _, response, content, error in
            guard Content.self == URL.self, error == nil else {
                return serialize(response, content as? Data, error)
            }
            return FileContent.content(of: content as? URL).flatMap { serialize(response, $0, nil) }
        }
        (serializer.readsHead, serializer.readsWholeFile) = (readsHead, true)
        return serializer
    }
}

extension BodySerializerProtocol {
    /// Returns the value for an outcome. Creates Foundation's response object only if the serializer uses it.
    ///
    /// - Parameter maximumBytes: The maximum size of a file that the serializer may read into memory; `nil` for no limit.
    ///   It does not apply to the program's own serializers, because they may read a file in parts.
    func serialize(_ outcome: RequestOutcome, maximumBytes: Int?) -> Result<SerializedObject, any Error> {
        let known = self as? BodySerializer<SerializedObject, ResponseContent>
        let needsHead = known?.readsHead ?? true || outcome.head?.hasNoContent == true
        let maximumBytes = known?.readsWholeFile == true ? maximumBytes : nil
        let error =
            outcome.error ?? maximumBytes.flatMap { FileContent.excess(of: outcome.body.file, over: $0) }
        return serializeResponse(
            outcome.request,
            needsHead ? outcome.response : nil,
            outcome.body.content(as: ResponseContent.self),
            error
        )
    }
}

/// Reads the file of a download.
enum FileContent {
    /// Returns the content of the file. Fails with ``AFError/ResponseSerializationFailureReason/inputFileNil`` if there
    /// is no file, and with ``AFError/ResponseSerializationFailureReason/inputFileReadFailed(at:)`` if it cannot be
    /// read.
    static func content(of file: URL?) -> Result<Data, any Error> {
        guard let file else { return .failure(AFError.responseSerializationFailed(reason: .inputFileNil)) }
        // If this is not a file URL, Foundation would load its content over the network.
        guard file.isFileURL, let content = try? Data(contentsOf: file) else {
            return .failure(AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file)))
        }
        return .success(content)
    }

    /// Returns the error for a file that is too large to be read into memory; `nil` for any other file.
    static func excess(of file: URL?, over maximumBytes: Int) -> (any Error)? {
        var status = stat()
        guard let file, stat(file.path, &status) == 0, status.st_size > maximumBytes else { return nil }
        let message =
            "the downloaded file has \(status.st_size) bytes, which exceeds the memory limit of \(maximumBytes) "
            + "bytes; read the file in parts, or raise RequestOptions.maximumDataBytes"
        // CURLE_FILESIZE_EXCEEDED, as for a body in memory.
        return TransferFailure(code: 63, phase: .response, message: message).urlError(for: nil)
    }
}
