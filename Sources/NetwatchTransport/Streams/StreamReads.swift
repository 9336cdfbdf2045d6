/// What a read came to.
package struct StreamRead: Sendable {
    /// What was received. Beside a failure: what had come before it, and is of no other read.
    package let bytes: [UInt8]
    /// Whether these are the last: the other side has closed its own.
    package let isAtEnd: Bool
    /// Why there are fewer bytes than were asked for.
    package let failure: TransferFailure?
}

/// The reads that wait, and the bytes that have come for the first of them.
///
/// Bytes are received only for a read, and never more than it takes; what the program does not ask for stays
/// with the kernel and the other side.
struct StreamReads {
    struct Read {
        let number: Int
        /// At least 1.
        let minimum: Int
        let maximum: Int
        let finish: @Sendable (StreamRead) -> Void
    }

    /// What is to be done.
    enum Step {
        case finish(Read, StreamRead)
        case close
    }

    private var line = StreamLine<Read>()
    private var buffer: [UInt8] = []
    private var hasEnded = false
    private var isClosed = false

    /// How many bytes may be received now.
    var room: Int {
        guard !isDone, case .operation(let read) = line.head else { return 0 }
        return max(0, read.maximum - buffer.count)
    }

    /// Whether nothing will be received any more.
    var isDone: Bool { hasEnded || isClosed }

    mutating func append(_ read: Read) { line.append(.operation(read), number: read.number) }

    mutating func appendClose(number: Int) { line.append(.close, number: number) }

    /// - Parameter bytes: None at the end of the stream.
    mutating func received(_ bytes: [UInt8]) {
        if bytes.isEmpty { hasEnded = true }
        if buffer.isEmpty { buffer = bytes } else { buffer += bytes }
    }

    /// Takes the first of the line out once its time has come. Until there is no more.
    mutating func next() -> Step? {
        switch line.head {
        case nil: return nil
        case .close:
            line.removeHead()
            isClosed = true
            buffer = []
            return .close
        case .operation(let read):
            guard let outcome = outcome(of: read) else { return nil }
            line.removeHead()
            return .finish(read, outcome)
        }
    }

    private mutating func outcome(of read: Read) -> StreamRead? {
        if isClosed { return StreamRead(bytes: [], isAtEnd: false, failure: .closed("reading")) }
        guard buffer.count >= read.minimum || hasEnded else { return nil }
        let bytes = take(atMost: read.maximum)
        return StreamRead(bytes: bytes, isAtEnd: hasEnded && buffer.isEmpty, failure: nil)
    }

    /// What remains was left by a read that was given up and took more than this one.
    private mutating func take(atMost count: Int) -> [UInt8] {
        let taken = buffer.prefix(count)
        buffer = Array(buffer.dropFirst(count))
        return Array(taken)
    }

    /// Takes a read out. What came for it stays for the next.
    mutating func giveUp(_ number: Int) -> Read? { line.remove(number) }

    /// Takes all reads out; the first gets what has come.
    mutating func fail(_ failure: TransferFailure) -> [(Read, StreamRead)] {
        line.removeAll().map { read in
            (read, StreamRead(bytes: take(atMost: read.maximum), isAtEnd: false, failure: failure))
        }
    }
}
