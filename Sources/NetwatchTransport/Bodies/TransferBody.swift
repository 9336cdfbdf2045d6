package import NetwatchEventLoop

/// The body of a request.
package enum TransferBody: Sendable {
    /// Bytes in memory, which are not copied as a whole.
    case bytes([UInt8])
    /// Bytes that come from somewhere else, for one transfer.
    case source(any TransferBodySource)

    /// How many bytes there are; `nil` when only the end will tell.
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

/// Where a body comes from piece by piece.
///
/// All of it is called on the engine's thread, which it must never block.
package protocol TransferBodySource: AnyObject, Sendable {
    /// How many bytes there are, the same at all times; `nil` when only the end will tell, which sends the
    /// body in chunks (RFC 9112 §7.1). A source that comes to another length fails its transfer.
    var length: Int64? { get }

    /// Writes what comes next to the beginning of a buffer, which has room for at least one byte.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep

    /// Goes back to the first byte, because the request is sent again.
    ///
    /// - Returns: Whether it can; otherwise the transfer fails with code 65 (`CURLE_SEND_FAIL_REWIND`).
    func rewind() -> Bool

    /// Called after ``TransferBodyStep/pending``: `wake` is to be called once, on any thread, as soon as there
    /// is something to read. Replaces the one before.
    func whenReady(_ wake: @escaping @Sendable () -> Void)

    /// Called when nothing more will be read. `wake` need not be called any more.
    func cancel()
}

/// What a source has.
package enum TransferBodyStep: Hashable, Sendable {
    /// So many bytes were written, at least one.
    case bytes(Int)
    /// Nothing yet.
    case pending
    /// Nothing more.
    case end
    case failed(SystemError)
}
