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
