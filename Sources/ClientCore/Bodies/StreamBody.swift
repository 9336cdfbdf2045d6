internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import Synchronization

/// A request body that is read from an `InputStream`. A stream cannot be rewound, so only one transfer can send it.
package final class StreamBody: Sendable {
    private let source: Lock<BufferedBodySource?>
    private let reader: InputStreamReader
    /// The stream, used only to compare identities, which needs no lock.
    nonisolated(unsafe) private let stream: InputStream

    /// Whether a transfer has already taken the stream with ``consume()``.
    var isConsumed: Bool { source.withLock { $0 == nil } }

    init(_ stream: sending InputStream) {
        nonisolated(unsafe) let owned = stream
        self.stream = owned
        reader = InputStreamReader(owned)
        source = Lock(BufferedBodySource(reader, length: nil))
    }

    /// Returns whether the stream is the body stream of the request.
    func isBody(of request: URLRequest) -> Bool { request.httpBodyStream === stream }

    /// Takes the stream, so that no later transfer can send it, and returns a reader for the whole stream. Returns
    /// `nil` if an earlier attempt has read a part of it. An attempt that failed before it had a connection has read
    /// nothing.
    func takeUnread() -> InputStreamReader? {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        source?.cancel()
        return reader.takeUnread()
    }

    /// Returns the source of the stream's bytes, once.
    ///
    /// - Throws: `URLError.requestBodyStreamExhausted` on all later calls.
    func consume() throws -> BufferedBodySource {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        guard let source else { throw URLError.streamExhausted }
        return source
    }
}

/// Reads an `InputStream` once, from its current position to its end, as the body of an upload.
///
/// The first read opens the stream, unless it is open already. The reader closes an open stream at its end, after a
/// failure, or when the reader is released. A read blocks until the stream returns bytes, ends or fails.
final class InputStreamReader: BlockingReader, Sendable {
    private enum Use: UInt8, AtomicRepresentable {
        case none
        case begun
        /// Another reader has the stream.
        case taken
    }

    fileprivate enum State {
        case new
        case open
        case ended
        case failed(SystemError)
    }

    /// The stream. `InputStream` is not `Sendable`, but a program that uploads a stream must no longer use it, as
    /// with `URLSession`. The reader uses the stream only under the lock of `state`, and in `deinit`, when no other
    /// reference to the reader exists.
    nonisolated(unsafe) private let stream: InputStream
    private let state = Lock(State.new)
    /// Separate from `state`, whose lock is held while a read blocks.
    private let use = Atomic(Use.none)

    /// Creates a reader, without opening the stream.
    ///
    /// - Parameter stream: A stream that no other code uses from now on. A stream that is already open is read from
    ///   its current position.
    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        if state.withLock({ $0.isOpen }) { stream.close() }
    }

    /// Returns another reader for the stream, and makes this reader fail with `ECANCELED`. Returns `nil` if this reader
    /// has already begun to read.
    func takeUnread() -> InputStreamReader? {
        let (isTaken, _) = use.compareExchange(
            expected: .none,
            desired: .taken,
            ordering: .sequentiallyConsistent
        )
        return isTaken ? InputStreamReader(stream) : nil
    }

    /// Reads the next bytes.
    ///
    /// - Parameter buffer: The destination, of at least one byte.
    /// - Returns: The number of bytes; 0 at the end and on all later calls.
    /// - Throws: The `errno` that the stream set, or `EIO` if it set none. All later calls throw the same error.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        // Reading 0 bytes would count as the end of the stream and close it.
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return 0 }
        let previous = use.compareExchange(
            expected: .none,
            desired: .begun,
            ordering: .sequentiallyConsistent
        )
        if previous.original == .taken { throw SystemError(call: "read", errno: ECANCELED) }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        return try state.withLock { state throws(SystemError) in
            try open(&state)
            guard case .open = state else { return 0 }
            return try read(bytes, buffer.count, &state)
        }
    }

    var isRewindable: Bool { false }

    /// Returns false, because a stream cannot be rewound.
    func rewind() -> Bool { false }

    private func open(_ state: inout State) throws(SystemError) {
        if case .failed(let error) = state { throw error }
        guard case .new = state else { return }
        errno = 0
        if stream.streamStatus == .notOpen { stream.open() }
        guard stream.streamStatus != .error else { throw fail("open", &state) }
        state = .open
    }

    private func read(
        _ bytes: UnsafeMutablePointer<UInt8>,
        _ capacity: Int,
        _ state: inout State
    ) throws(SystemError) -> Int {
        errno = 0
        let count = stream.read(bytes, maxLength: capacity)
        // A negative count is an error. A faulty subclass of `InputStream` may also return more than the buffer holds.
        guard (0...capacity).contains(count) else { throw fail("read", &state) }
        if count == 0 { close(&state, .ended) }
        return count
    }

    /// Closes the stream, and returns an error with the `errno` that the stream set.
    ///
    /// `Stream.streamError` has more details, but traps if there is no error, and prints to standard error if there is
    /// one.
    private func fail(_ call: String, _ state: inout State) -> SystemError {
        let error = SystemError(call: call, errno: errno == 0 ? EIO : errno)
        close(&state, .failed(error))
        return error
    }

    private func close(_ state: inout State, _ end: State) {
        stream.close()
        state = end
    }
}

extension InputStreamReader.State {
    fileprivate var isOpen: Bool {
        if case .open = self { true } else { false }
    }
}
