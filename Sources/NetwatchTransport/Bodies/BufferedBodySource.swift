internal import Dispatch
package import NetwatchEventLoop
internal import Synchronization

/// A reader with blocking calls.
///
/// Only one thread at a time calls it, but not always the same one.
package protocol BlockingReader: AnyObject, Sendable {
    /// Reads the next bytes into a buffer, and blocks until there are some.
    ///
    /// - Returns: The number of bytes written; 0 at the end.
    /// - Throws: ``SystemError`` when the read fails.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int

    /// Whether ``rewind()`` is possible. Must not block; other threads may be reading meanwhile.
    var isRewindable: Bool { get }

    /// Goes back to the first byte without blocking. Returns whether that is possible.
    func rewind() -> Bool
}

/// A body from a blocking reader. A separate queue reads ahead into a small buffer.
///
/// The queue gets a thread when half of the buffer is empty, and keeps it until the buffer is full or everything is
/// read. Nothing is read before the first request for data. If the source is cancelled while the reader blocks, the
/// reader is released when its call returns.
package final class BufferedBodySource: TransferBodySource {
    /// The maximum number of bytes per read.
    static let chunkSize = 64 * 1024
    /// The maximum number of chunks that are read ahead.
    static let maximumChunks = 4

    fileprivate struct State {
        var chunks: [ArraySlice<UInt8>] = []
        var isReading = false
        /// Whether to rewind when the current read returns.
        var mustRewind = false
        var isCancelled = false
        /// The step that follows the chunks: ``TransferBodyStep/end`` or a failure.
        var ending: TransferBodyStep?
        var wake: (@Sendable () -> Void)?

        var hasRoom: Bool { chunks.count < maximumChunks && ending == nil && !isCancelled }
        var isHalfEmpty: Bool { chunks.count <= maximumChunks / 2 }
        var isReady: Bool { !chunks.isEmpty || ending != nil }
    }

    package let length: Int64?
    private let reader: any BlockingReader
    private let queue = DispatchQueue(label: "netwatch.body")
    private let state = Mutex(State())

    /// - Parameter length: The number of bytes the reader has; `nil` if it is known only at the end.
    package init(_ reader: any BlockingReader, length: Int64?) {
        self.reader = reader
        self.length = length
    }

    /// Creates a source for a file, with the current length of the file.
    ///
    /// - Throws: ``SystemError`` when the file cannot be opened or is not a regular file.
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

    /// Returns whether the thread should read another chunk; if not, the thread must stop reading.
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
