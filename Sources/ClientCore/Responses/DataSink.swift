internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

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

    mutating func write(_ bytes: [UInt8]) throws {
        if let closure {
            closure(Data(bytes))
        } else {
            let capacity = maximumBytes - (data?.count ?? 0)
            bytes.prefix(capacity).withUnsafeBufferPointer { data?.append($0) }
            if bytes.count > capacity { throw TransferFailure.tooMuchData(maximumBytes).urlError(for: nil) }
        }
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody { body }

    mutating func releaseClosures() { closure = nil }

    var body: ResponseBody { ResponseBody(data: data) }
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
