internal import Dispatch
internal import Glibc
package import NetwatchEventLoop

/// A reader whose calls may block.
///
/// The calls of ``read(into:)`` do not overlap, but may come from different threads.
package protocol BlockingReader: AnyObject, Sendable {
    /// Reads the next bytes into a buffer. Blocks until at least one byte is available or the end is reached.
    ///
    /// - Returns: The number of bytes written; 0 at the end.
    /// - Throws: ``SystemError`` if the read fails.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int

    /// Whether ``rewind()`` is possible. The getter must not block. It may be called during a ``read(into:)`` on
    /// another thread.
    var isRewindable: Bool { get }

    /// Goes back to the first byte, without blocking. Returns `false` if that is not possible.
    func rewind() -> Bool
}

/// A body that comes from a blocking reader. A separate dispatch queue reads ahead into a small buffer.
///
/// Reading begins with the first request for data. The queue gets a thread when half of the buffer is empty. It keeps
/// the thread until the buffer is full or the reader has ended. If the source is cancelled while the reader blocks, the
/// reader is released when its call returns.
package final class BufferedBodySource: TransferBodySource {
    /// The maximum number of bytes per read.
    static let chunkSize = 64 * 1024
    /// The maximum number of chunks that are read ahead.
    static let maximumChunks = 4

    fileprivate struct State {
        var chunks: [ArraySlice<UInt8>] = []
        var isReading = false
        /// Whether the reader must be rewound when its current read returns.
        var mustRewind = false
        var isCancelled = false
        /// The last step, which follows the buffered chunks: ``TransferBodyStep/end`` or a failure.
        var ending: TransferBodyStep?
        var wake: (@Sendable () -> Void)?

        var hasRoom: Bool { chunks.count < maximumChunks && ending == nil && !isCancelled }
        var isHalfEmpty: Bool { chunks.count <= maximumChunks / 2 }
        var isReady: Bool { !chunks.isEmpty || ending != nil }
    }

    package let length: Int64?
    private let reader: any BlockingReader
    private let queue = DispatchQueue(label: "netwatch.body")
    private let state = Lock(State())

    /// Creates a source that reads from a blocking reader.
    ///
    /// - Parameter length: The number of bytes that the reader returns in total; `nil` if that is not known in advance.
    package init(_ reader: any BlockingReader, length: Int64?) {
        self.reader = reader
        self.length = length
    }

    /// Creates a source for a file. The body has the length that the file has now.
    ///
    /// - Throws: ``SystemError`` if the file cannot be opened or is not a regular file.
    package convenience init(path: String) throws(SystemError) {
        let file = try FileReader(path: path)
        self.init(file, length: file.length)
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep {
        let step = state.withLock { $0.take(into: buffer) }
        readAhead()
        return step
    }

    package func whenReady(_ wake: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if !state.isReady { state.wake = wake }
            return state.isReady
        }
        if isReady { wake() }
    }

    package var isRewindable: Bool { reader.isRewindable }

    package func rewind() -> Bool {
        state.withLock { state in
            (state.chunks, state.ending, state.wake) = ([], nil, nil)
            state.mustRewind = state.isReading
            return state.isReading || reader.rewind()
        }
    }

    package func cancel() {
        state.withLock { state in
            (state.chunks, state.wake, state.isCancelled) = ([], nil, true)
        }
    }

    // MARK: On the queue

    private func readAhead() {
        let starts = state.withLock { state in
            guard state.hasRoom, state.isHalfEmpty, !state.isReading else { return false }
            state.isReading = true
            return true
        }
        if starts { queue.async { self.fill() } }
    }

    private func fill() {
        while state.withLock({ $0.keepReading() }) {
            let outcome = Result { () throws(SystemError) in try readChunk() }
            let wake = state.withLock { state in
                if state.mustRewind { state.rewound(reader.rewind()) } else { state.add(outcome) }
                defer { if state.isReady { state.wake = nil } }
                return state.isReady ? state.wake : nil
            }
            wake?()
        }
    }

    private func readChunk() throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let chunk = [UInt8](unsafeUninitializedCapacity: Self.chunkSize) { buffer, count in
            do throws(SystemError) {
                count = try reader.read(into: UnsafeMutableRawBufferPointer(buffer))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return chunk
    }
}

extension BufferedBodySource.State {
    fileprivate mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep {
        guard let chunk = chunks.first else { return ending ?? .pending }
        let taken = chunk.prefix(buffer.count)
        buffer.copyBytes(from: taken)
        chunks[0].removeFirst(taken.count)
        if chunks[0].isEmpty { chunks.removeFirst() }
        return .bytes(taken.count)
    }

    /// Returns whether the thread must read another chunk. On `false`, it must stop reading.
    fileprivate mutating func keepReading() -> Bool {
        isReading = hasRoom
        return isReading
    }

    fileprivate mutating func add(_ outcome: Result<[UInt8], SystemError>) {
        switch outcome {
        case _ where isCancelled: break
        case .success(let chunk) where chunk.isEmpty: ending = .end
        case .success(let chunk): chunks.append(chunk[...])
        case .failure(let error): ending = .failed(error)
        }
    }

    fileprivate mutating func rewound(_ isPossible: Bool) {
        mustRewind = false
        if !isPossible { ending = .failed(.cannotRewind) }
    }
}

/// A reader of a regular file.
package final class FileReader: BlockingReader {
    /// The file's length in bytes when it was opened.
    package let length: Int64
    private let path: String
    private let file: FileDescriptor

    /// Opens a regular file.
    ///
    /// - Throws: ``SystemError`` of `open` or `fstat`. The error is `EISDIR` for a directory. It is `EINVAL` for pipes,
    ///   devices and other special files, because their length does not say how much can be read.
    package init(path: String) throws(SystemError) {
        guard !path.utf8.contains(0) else { throw SystemError(call: "open", errno: EINVAL) }
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags) })
        let descriptor = file.rawValue
        var status = stat()
        try systemCall("fstat \(path)") { fstat(descriptor, &status) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else {
            throw SystemError(call: "open \(path)", errno: kind == S_IFDIR ? EISDIR : EINVAL)
        }
        length = Int64(status.st_size)
        self.path = path
        self.file = file
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        let descriptor = file.rawValue
        return try systemCall("read \(path)") { Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
    }

    /// Whether the file can be read from any position, which a pipe cannot.
    package var isRewindable: Bool { lseek(file.rawValue, 0, SEEK_CUR) >= 0 }

    package func rewind() -> Bool {
        lseek(file.rawValue, 0, SEEK_SET) == 0
    }
}
