internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import Synchronization

/// Reads an `InputStream` as the body of an upload, once from its beginning to its end.
///
/// The stream is opened with the first read. It is closed at its end, after a failure, or when the reader is
/// released. Reads block as long as the stream does.
final class InputStreamReader: BlockingReader, Sendable {
    fileprivate enum State {
        case new
        case open
        case ended
        case failed(SystemError)
    }

    /// Foundation's streams are not Sendable. A program that passes a stream to an upload transfers ownership, as
    /// with URLSession: no other code reads or closes it. The stream is accessed only under `state`'s lock, and in
    /// `deinit`, when no other reference exists.
    nonisolated(unsafe) private let stream: InputStream
    private let state = Mutex(State.new)

    /// - Parameter stream: A stream that no other code uses from now on. A stream that is already open is read from
    ///   its current position.
    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        if state.withLock({ $0.isOpen }) { stream.close() }
    }

    /// Reads the next bytes.
    ///
    /// - Parameter buffer: The destination. It has room for at least one byte.
    /// - Returns: The number of bytes; 0 at the end and on all later calls.
    /// - Throws: The `errno` that the stream set, or `EIO` if it set none. All later calls throw the same error.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        // An empty buffer must not be reported as the end of the stream.
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return 0 }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        return try state.withLock { state throws(SystemError) in
            try open(&state)
            guard case .open = state else { return 0 }
            return try read(bytes, buffer.count, &state)
        }
    }

    var isRewindable: Bool { false }

    /// Returns false: a stream cannot be rewound.
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
        // A custom stream class may return a count larger than the buffer.
        guard (0...capacity).contains(count) else { throw fail("read", &state) }
        if count == 0 { close(&state, .ended) }
        return count
    }

    /// Uses `errno`: `streamError` has more details, but traps if there is no error, and otherwise prints to standard
    /// error.
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
