internal import Glibc
package import NetwatchEventLoop

/// The body of a request.
package enum TransferBody: Sendable {
    /// Bytes in memory. The transfer copies them in small parts only, as libcurl needs them.
    case bytes([UInt8])
    /// Bytes from a source. A source can be used for one transfer only.
    case source(any TransferBodySource)

    /// The number of bytes; `nil` if it is known only at the end.
    package var length: Int64? {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .source(let source): source.length
        }
    }
}

extension TransferBody: ExpressibleByArrayLiteral {
    package init(arrayLiteral elements: UInt8...) {
        self = .bytes(elements)
    }
}

/// A source that provides a body in pieces.
///
/// All methods are called on the engine's thread and must not block it.
package protocol TransferBodySource: AnyObject, Sendable {
    /// The number of bytes, which must not change; `nil` if it is known only at the end.
    ///
    /// A body of unknown length is sent in chunks (RFC 9112 §7.1). A transfer fails if its source provides more or
    /// fewer bytes than announced.
    var length: Int64? { get }

    /// Writes the next bytes to a buffer. The buffer has room for at least one byte.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep

    /// Whether ``rewind()`` is possible.
    var isRewindable: Bool { get }

    /// Goes back to the first byte. Called when the request must be sent again.
    ///
    /// - Returns: Whether the source has gone back. If not, the transfer fails with code 65 (`CURLE_SEND_FAIL_REWIND`).
    func rewind() -> Bool

    /// Registers a function that the source must call once when the next step is available. Called after
    /// ``TransferBodyStep/pending``.
    ///
    /// The source may call `wake` on any thread. A new function replaces the previous one.
    func whenReady(_ wake: @escaping @Sendable () -> Void)

    /// Ends the use of the source: the transfer reads nothing more. The source need not call `wake` afterwards.
    func cancel()
}

/// The result of reading from a ``TransferBodySource``.
package enum TransferBodyStep: Hashable, Sendable {
    /// The number of bytes written, at least one.
    case bytes(Int)
    /// No bytes are available yet; more will follow.
    case pending
    /// The end of the body.
    case end
    case failed(SystemError)
}

/// Passes the body of a request to libcurl in pieces, and enforces the body's announced length.
///
/// The server would take surplus bytes for the next request on the connection. If bytes were missing, the server would
/// wait for them and take the next request for the rest of the body.
struct TransferBodyReader {
    enum Step {
        case bytes(Int)
        case pending
        case end
        case failed(Fault)
    }

    enum Fault {
        case endedAfter(Int64, of: Int64)
        case longerThan(Int64)
        case notRewindable
        case unreadable(SystemError)
    }

    /// The length of the body; `nil` if it is known only at the end.
    let length: Int64?
    private let body: TransferBody?
    /// The number of bytes read since the start or the last rewind.
    private var position: Int64 = 0
    /// The last byte, withheld until the source has confirmed the end.
    private var withheld: UInt8?
    private(set) var hasEnded = false

    init(_ body: TransferBody?) {
        self.body = body
        length = body.map(\.length) ?? 0
    }

    /// Whether libcurl has read nothing of the body yet.
    var isUntouched: Bool { position == 0 && !hasEnded }

    /// Whether the body can still be sent from its beginning: nothing was read yet, or the source can rewind.
    var mayRestart: Bool {
        guard !isUntouched, case .source(let source) = body else { return true }
        return source.isRewindable
    }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        switch body {
        case nil: return .end
        case .bytes(let bytes): return copy(bytes, into: buffer)
        case .source(let source): return read(source, into: buffer)
        }
    }

    /// Registers a function that is called when the source has more bytes.
    func whenReady(_ wake: @escaping @Sendable () -> Void) {
        if case .source(let source) = body { source.whenReady(wake) }
    }

    /// Goes back to the beginning of the body. Returns `false` if that is not possible.
    mutating func rewind() -> Bool {
        if case .source(let source) = body, !source.rewind() { return false }
        (position, withheld, hasEnded) = (0, nil, false)
        return true
    }

    private mutating func copy(_ bytes: [UInt8], into buffer: UnsafeMutableRawBufferPointer) -> Step {
        let count = bytes.withUnsafeBytes { bytes in
            let next = bytes[Int(position)...].prefix(buffer.count)
            buffer.copyBytes(from: next)
            return next.count
        }
        position += Int64(count)
        return count > 0 ? .bytes(count) : .end
    }

    private mutating func read(
        _ source: any TransferBodySource,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Step {
        if let withheld {
            buffer[0] = withheld
            return confirmEnd(of: source, after: 1, in: buffer)
        }
        switch source.read(into: buffer) {
        case .bytes(let count): return advance(source, by: count, in: buffer)
        case .pending: return .pending
        case .end: return end()
        case .failed(let error): return .failed(Fault(error))
        }
    }

    private mutating func advance(
        _ source: any TransferBodySource,
        by count: Int,
        in buffer: UnsafeMutableRawBufferPointer
    ) -> Step {
        precondition(
            count > 0 && count <= buffer.count,
            "a body source returned \(count) bytes; accepted: 1 to \(buffer.count)"
        )
        position += Int64(count)
        guard let length else { return .bytes(count) }
        if position < length { return .bytes(count) }
        if position > length { return .failed(.longerThan(length)) }
        return confirmEnd(of: source, after: count, in: buffer)
    }

    /// Checks that the source ends at its announced length.
    ///
    /// The last byte is withheld until the source confirms the end. So the request stays incomplete if the source has
    /// more bytes.
    private mutating func confirmEnd(
        of source: any TransferBodySource,
        after count: Int,
        in buffer: UnsafeMutableRawBufferPointer
    ) -> Step {
        var excess: UInt8 = 0
        switch withUnsafeMutableBytes(of: &excess, { source.read(into: $0) }) {
        case .end:
            (withheld, hasEnded) = (nil, true)
            return .bytes(count)
        case .pending:
            withheld = buffer[count - 1]
            return count > 1 ? .bytes(count - 1) : .pending
        case .bytes: return .failed(.longerThan(position))
        case .failed(let error): return .failed(Fault(error))
        }
    }

    private mutating func end() -> Step {
        hasEnded = true
        guard let length, position < length else { return .end }
        return .failed(.endedAfter(position, of: length))
    }
}

extension TransferBodyReader.Fault {
    init(_ error: SystemError) {
        self = error == .cannotRewind ? .notRewindable : .unreadable(error)
    }

    var errno: Int32 {
        if case .unreadable(let error) = self { error.errno } else { 0 }
    }

    var message: String {
        switch self {
        case .endedAfter(let count, let length): "the request body ended after \(count) of \(length) bytes"
        case .longerThan(let length):
            "the request body is longer than its announced \(length) bytes"
        case .notRewindable: "the request must be sent again, but its body cannot be rewound"
        case .unreadable(let error): "cannot read the request body: \(error)"
        }
    }
}

extension SystemError {
    /// The error of a source that returned `true` from `rewind()` and found out only later that it cannot rewind.
    static let cannotRewind = SystemError(call: "rewind", errno: ESPIPE)
}
