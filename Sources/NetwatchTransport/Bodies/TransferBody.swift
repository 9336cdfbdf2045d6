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
