internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Reads an `InputStream` as the body of an upload, once from its beginning to its end.
///
/// The stream is opened with the first read, and closed after its end, after a failure, or with the reader.
/// Reading blocks for as long as the stream does.
final class InputStreamReader: Sendable {
    fileprivate enum State {
        case new
        case open
        case ended
        case failed(SystemError)
    }

    /// Foundation's streams are not Sendable. Whoever gives a stream to an upload gives it away, as with
    /// URLSession: nobody else reads or closes it. Here it is touched under `state`'s lock only, and in
    /// `deinit`, when no other reference is left.
    nonisolated(unsafe) private let stream: InputStream
    private let state = Mutex(State.new)

    /// - Parameter stream: A stream that nobody uses from now on. One that is open already is read from
    ///   where it stands.
    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        if state.withLock({ $0.isOpen }) { stream.close() }
    }

    /// Reads the next bytes.
    ///
    /// - Parameter buffer: Where they go. It has room for at least one byte.
    /// - Returns: How many there are; 0 at the end and ever after.
    /// - Throws: What the stream left in `errno`, or `EIO` if it left nothing; from then on always.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        // Room for nothing is no question about the end.
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return 0 }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        return try state.withLock { state throws(SystemError) in
            try open(&state)
            guard case .open = state else { return 0 }
            return try read(bytes, buffer.count, &state)
        }
    }

    /// A stream cannot go back.
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
        _ room: Int,
        _ state: inout State
    ) throws(SystemError) -> Int {
        errno = 0
        let count = stream.read(bytes, maxLength: room)
        // A stream of the program's own may claim more than there was room for.
        guard (0...room).contains(count) else { throw fail("read", &state) }
        if count == 0 { close(&state, .ended) }
        return count
    }

    /// `streamError` would tell more, but traps when there is none, and otherwise prints to standard error.
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
