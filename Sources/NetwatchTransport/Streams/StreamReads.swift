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

/// The pending writes. Each has the bytes that are still to be sent.
struct StreamWrites {
    struct Write {
        let number: Int
        /// The bytes that have not been sent yet.
        var rest: ArraySlice<UInt8>
        var hasStarted = false
        let finish: @Sendable (TransferFailure?) -> Void
    }

    /// The next action.
    enum Step {
        case finish(Write, TransferFailure?)
        case close
    }

    private var queue = StreamQueue<Write>()
    /// Whether no more bytes will be sent.
    private(set) var isDone = false
    /// The total number of bytes sent.
    private(set) var sentBytes: Int64 = 0

    /// The bytes to send next; `nil` if there are none.
    var pending: ArraySlice<UInt8>? {
        guard !isDone, case .operation(let write) = queue.head else { return nil }
        return write.rest
    }

    mutating func append(_ write: Write) { queue.append(.operation(write), number: write.number) }

    mutating func appendClose(number: Int) { queue.append(.close, number: number) }

    mutating func sent(_ count: Int) {
        guard case .operation(var write) = queue.head else { return }
        write.rest = write.rest.dropFirst(count)
        write.hasStarted = true
        sentBytes += Int64(count)
        queue.replaceHead(by: .operation(write))
    }

    /// Removes the first entry of the queue if it can be completed. Returns `nil` if it cannot be completed, or if the
    /// queue is empty.
    mutating func next() -> Step? {
        switch queue.head {
        case nil: return nil
        case .close:
            queue.removeHead()
            isDone = true
            return .close
        case .operation(let write):
            guard isDone || write.rest.isEmpty else { return nil }
            queue.removeHead()
            return .finish(write, isDone ? .closed("writing") : nil)
        }
    }

    mutating func remove(_ number: Int) -> Write? { queue.remove(number) }

    /// Removes all writes and returns them in order.
    mutating func removeAll() -> [Write] { queue.removeAll() }
}

/// A queue of pending reads or writes in the order requested. A request to close the reading or writing side is an
/// entry, too.
///
/// Entries are stored by their number, so that each can be cancelled. Numbers increase, but some may be missing,
/// because reads and writes are numbered together and are in separate queues.
struct StreamQueue<Operation> {
    enum Entry {
        case operation(Operation)
        case close
    }

    private var entries: [Int: Entry] = [:]
    /// The lowest number in the queue.
    private var first = 0

    var head: Entry? { entries[first] }

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ entry: Entry, number: Int) {
        if entries.isEmpty { first = number }
        entries[number] = entry
    }

    mutating func replaceHead(by entry: Entry) { entries[first] = entry }

    mutating func removeHead() { _ = remove(first) }

    /// Removes an operation at any position. Returns `nil` if it is not in the queue.
    mutating func remove(_ number: Int) -> Operation? {
        let entry = entries.removeValue(forKey: number)
        while !entries.isEmpty, entries[first] == nil { first += 1 }
        guard case .operation(let operation) = entry else { return nil }
        return operation
    }

    /// Removes all operations and returns them in order.
    mutating func removeAll() -> [Operation] {
        defer { entries = [:] }
        return entries.sorted { $0.key < $1.key }.compactMap { entry in
            if case .operation(let operation) = entry.value { operation } else { nil }
        }
    }
}
