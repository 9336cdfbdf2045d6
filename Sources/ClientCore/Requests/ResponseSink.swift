internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// Where the body of a response goes. It is used on its request's queue only.
protocol ResponseSink {
    /// Changes the request of a hop, to ask for the rest of a file for example.
    mutating func prepare(_ request: inout URLRequest) throws
    /// Takes the final head of a hop, and says what is to become of its body.
    mutating func begin(_ head: ResponseHead) throws -> SinkVerdict
    mutating func write(_ bytes: [UInt8]) throws
    /// The attempt has ended; a body that is not whole after all is a failure.
    mutating func end(_ failure: (any Error)?) throws
    /// The response was not refused: puts it where it belongs.
    mutating func accept(_ head: ResponseHead?) throws
    /// The request is over. Returns what handlers are to see.
    mutating func finish(_ failure: (any Error)?) -> ResponseBody
    /// Drops the program's closures: nothing more will come.
    mutating func letGo()
    /// What has come so far, for validators.
    var body: ResponseBody { get }
    /// How many bytes were there before the hop began.
    var offset: Int64 { get }
}

enum SinkVerdict {
    case take
    /// The answer is of no use: the request is sent again, prepared anew.
    case sendAgain
}

extension ResponseSink {
    var offset: Int64 { 0 }

    mutating func prepare(_ request: inout URLRequest) throws {}
    mutating func end(_ failure: (any Error)?) throws {}
    mutating func accept(_ head: ResponseHead?) throws {}
    mutating func letGo() {}
}

/// Keeps a body in memory, or hands it on as it comes.
struct DataSink: ResponseSink {
    let maximumBytes: Int
    private var data: Data?
    private var closure: (@Sendable (Data) -> Void)?

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    /// - Parameter closure: Takes the body in place of memory, beginning with what is there.
    mutating func stream(to closure: (@Sendable (Data) -> Void)?) {
        self.closure = closure
        guard let closure, let data else { return }
        self.data = nil
        if !data.isEmpty { closure(data) }
    }

    mutating func prepare(_ request: inout URLRequest) throws {
        data = nil
    }

    mutating func begin(_ head: ResponseHead) throws -> SinkVerdict {
        .take
    }

    mutating func write(_ bytes: [UInt8]) throws {
        if let closure {
            closure(Data(bytes))
        } else {
            if data == nil { data = Data() }
            let room = maximumBytes - (data?.count ?? 0)
            data?.append(contentsOf: bytes.prefix(room))
            if bytes.count > room { throw TransferFailure.tooMuchData(maximumBytes).error(for: nil) }
        }
    }

    mutating func end(_ failure: (any Error)?) throws {
        // Nothing that was sent is without data, and a stream's data is with its closure.
        if closure == nil { data = data ?? Data() }
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody { body }

    mutating func letGo() { closure = nil }

    var body: ResponseBody { ResponseBody(data: data) }
}

extension TransferFailure {
    /// `CURLE_FILESIZE_EXCEEDED`, as for a limit that libcurl's side knows of.
    fileprivate static func tooMuchData(_ maximum: Int) -> TransferFailure {
        let hint = "download it to a file, or allow more by RequestOptions.maximumDataBytes"
        return TransferFailure(
            code: 63,
            phase: .response,
            message:
                "the response's body is longer than the \(maximum) bytes that are kept in memory; \(hint)"
        )
    }
}
