/// The result of a read.
package struct StreamRead: Sendable {
    /// The bytes received. After a failure, these are the bytes received before it; no other read returns them.
    package let bytes: [UInt8]
    /// Whether these are the last bytes, because the peer has closed its writing side.
    package let isAtEnd: Bool
    /// The reason why there are fewer bytes than requested; `nil` after a success.
    package let failure: TransferFailure?
}

/// The pending reads, and the bytes received for the first of them.
///
/// Bytes are received only if there is a read, and never more than it accepts. All other bytes stay in the kernel and
/// with the peer.
struct StreamReads {
    struct Read {
        let number: Int
        /// The minimum number of bytes, at least 1.
        let minimum: Int
        let maximum: Int
        let finish: @Sendable (StreamRead) -> Void
    }

    /// The next action.
    enum Step {
        case finish(Read, StreamRead)
        case close
    }

    private var queue = StreamQueue<Read>()
    private var buffer: [UInt8] = []
    private var hasEnded = false
    private var isClosed = false

    /// The number of bytes that may be received now.
    var capacity: Int {
        guard !isDone, case .operation(let read) = queue.head else { return 0 }
        return max(0, read.maximum - buffer.count)
    }

    /// Whether no more bytes will be received.
    var isDone: Bool { hasEnded || isClosed }

    mutating func append(_ read: Read) { queue.append(.operation(read), number: read.number) }

    mutating func appendClose(number: Int) { queue.append(.close, number: number) }

    /// Stores received bytes.
    ///
    /// - Parameter bytes: The bytes; empty at the end of the stream.
    mutating func received(_ bytes: [UInt8]) {
        if bytes.isEmpty { hasEnded = true }
        if buffer.isEmpty { buffer = bytes } else { buffer += bytes }
    }

    /// Removes the first entry of the queue if it can be completed. Returns `nil` if it cannot be completed, or if the
    /// queue is empty.
    mutating func next() -> Step? {
        switch queue.head {
        case nil: return nil
        case .close:
            queue.removeHead()
            isClosed = true
            buffer = []
            return .close
        case .operation(let read):
            guard let outcome = outcome(of: read) else { return nil }
            queue.removeHead()
            return .finish(read, outcome)
        }
    }

    private mutating func outcome(of read: Read) -> StreamRead? {
        if isClosed { return StreamRead(bytes: [], isAtEnd: false, failure: .closed("reading")) }
        guard buffer.count >= read.minimum || hasEnded else { return nil }
        let bytes = take(atMost: read.maximum)
        return StreamRead(bytes: bytes, isAtEnd: hasEnded && buffer.isEmpty, failure: nil)
    }

    /// Removes and returns the first bytes of the buffer. Some bytes may remain: they were received for a cancelled
    /// read that accepted more than this one.
    private mutating func take(atMost count: Int) -> [UInt8] {
        let taken = buffer.prefix(count)
        buffer = Array(buffer.dropFirst(count))
        return Array(taken)
    }

    /// Removes a read. The bytes received for it are kept for the next read.
    mutating func remove(_ number: Int) -> Read? { queue.remove(number) }

    /// Removes all reads and returns each with its result, in order. The bytes received so far go to the first reads.
    mutating func fail(_ failure: TransferFailure) -> [(Read, StreamRead)] {
        queue.removeAll().map { read in
            (read, StreamRead(bytes: take(atMost: read.maximum), isAtEnd: false, failure: failure))
        }
    }
}
