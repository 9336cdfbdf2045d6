internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The destination of a response's body. A sink is used only on its request's queue.
protocol ResponseSink {
    /// Prepares for the response to a request. Returns header fields that replace those of the request, for example to
    /// request only the rest of a file.
    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header]
    /// Receives the head of a response that is neither a redirect nor an answered challenge, and decides whether to
    /// accept the body.
    mutating func begin(_ head: ResponseHead) throws -> SinkDecision
    mutating func write(_ piece: BodyPiece) throws
    /// Called when the attempt has ended, with its error or `nil`. Throws if the body is incomplete.
    mutating func end(_ failure: (any Error)?) throws
    /// Called when all validators have accepted the response. Moves the body to its destination.
    mutating func accept(_ head: ResponseHead?) throws
    /// Called when the request has finished, with its error or `nil`. Returns the body for the handlers.
    mutating func finish(_ failure: (any Error)?) -> ResponseBody
    /// Releases the program's closures. Called when no more bytes will be written.
    mutating func releaseClosures()
    /// The body received so far, for validators.
    var body: ResponseBody { get }
    /// The number of bytes of the body that an earlier transfer has already written.
    var offset: Int64 { get }
}

/// How a sink handles the response of a hop.
enum SinkDecision {
    case accept
    /// The response is unusable. The request must be prepared and sent again.
    case sendAgain
}

extension ResponseSink {
    var offset: Int64 { 0 }

    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header] { [] }
    mutating func end(_ failure: (any Error)?) throws {}
    mutating func accept(_ head: ResponseHead?) throws {}
    mutating func releaseClosures() {}
}

/// The sink that keeps a body in memory, or passes it to a closure as it arrives.
struct DataSink: ResponseSink {
    let maximumBytes: Int
    /// The received bytes; `nil` if a closure receives them.
    private var data: Data? = Data()
    private var closure: (@Sendable (Data) -> Void)?

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    /// Passes the body to a closure from now on, instead of keeping it in memory.
    ///
    /// - Parameter closure: Receives the body, beginning with the bytes that have already arrived.
    mutating func stream(to closure: (@Sendable (Data) -> Void)?) {
        self.closure = closure
        if let closure, let data, !data.isEmpty { closure(data) }
        data = closure == nil ? data ?? Data() : nil
    }

    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header] {
        data = closure == nil ? Data() : nil
        return []
    }

    mutating func begin(_ head: ResponseHead) throws -> SinkDecision {
        .accept
    }

    mutating func write(_ piece: BodyPiece) throws {
        if let closure { return closure(piece.data) }
        let capacity = maximumBytes - (data?.count ?? 0)
        piece.withUnsafeBytes { bytes in
            let kept = UnsafeRawBufferPointer(rebasing: bytes.prefix(capacity))
            data?.append(kept.assumingMemoryBound(to: UInt8.self))
        }
        if piece.count > capacity { throw TransferFailure.tooMuchData(maximumBytes).urlError(for: nil) }
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody { body }

    mutating func releaseClosures() { closure = nil }

    var body: ResponseBody { ResponseBody(data: data) }
}

extension BodyPiece {
    /// The piece without a copy of its bytes, if possible. Copying would take as long as receiving them.
    fileprivate var data: Data {
        guard let block else { return Data(bytes) }
        let start = UnsafeMutableRawPointer(mutating: block.bytes.baseAddress!)
        let release = Data.Deallocator.custom { _, _ in withExtendedLifetime(block) {} }
        return Data(bytesNoCopy: start, count: count, deallocator: release)
    }
}

extension TransferFailure {
    /// Returns a failure with the code that the transport uses for its own limits, `CURLE_FILESIZE_EXCEEDED` (63).
    fileprivate static func tooMuchData(_ maximum: Int) -> TransferFailure {
        let hint = "download it to a file, or raise RequestOptions.maximumDataBytes"
        return TransferFailure(
            code: 63,
            phase: .response,
            message:
                "the response body exceeds the memory limit of \(maximum) bytes; \(hint)"
        )
    }
}
