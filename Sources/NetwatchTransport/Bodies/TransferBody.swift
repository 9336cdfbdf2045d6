package import NetwatchEventLoop

/// The body of a request.
package enum TransferBody: Sendable {
    /// Bytes in memory. They are not copied as a whole.
    case bytes([UInt8])
    /// Bytes from a source, for one transfer only.
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
    /// The number of bytes, which must not change; `nil` if it is known only at the end. The body is then sent in
    /// chunks (RFC 9112 §7.1). A transfer fails if its source provides a different number of bytes.
    var length: Int64? { get }

    /// Writes the next bytes to a buffer, which has room for at least one byte.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep

    /// Whether ``rewind()`` is possible.
    var isRewindable: Bool { get }

    /// Goes back to the first byte, because the request is sent again.
    ///
    /// - Returns: Whether that is possible. Otherwise the transfer fails with code 65 (`CURLE_SEND_FAIL_REWIND`).
    func rewind() -> Bool

    /// Registers a function for when there is something to read. Called after ``TransferBodyStep/pending``.
    ///
    /// The source must call `wake` once, on any thread. A new function replaces the previous one.
    func whenReady(_ wake: @escaping @Sendable () -> Void)

    /// Called when nothing more will be read. The source need not call `wake` afterwards.
    func cancel()
}

/// The result of reading from a source.
package enum TransferBodyStep: Hashable, Sendable {
    /// The number of bytes written, at least one.
    case bytes(Int)
    /// No bytes yet; more will follow.
    case pending
    /// The end of the body.
    case end
    case failed(SystemError)
}
