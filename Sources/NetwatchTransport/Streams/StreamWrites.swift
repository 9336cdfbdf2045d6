/// The pending writes, and how much of the first was sent.
struct StreamWrites {
    struct Write {
        let number: Int
        /// The bytes not sent yet.
        var rest: ArraySlice<UInt8>
        var isBegun = false
        let finish: @Sendable (TransferFailure?) -> Void
    }

    /// The next action.
    enum Step {
        case finish(Write, TransferFailure?)
        case close
    }

    private var line = StreamLine<Write>()
    /// Whether nothing more will be sent.
    private(set) var isDone = false
    /// The number of all bytes sent.
    private(set) var sentBytes: Int64 = 0

    /// The bytes that may be sent now.
    var pending: ArraySlice<UInt8>? {
        guard !isDone, case .operation(let write) = line.head else { return nil }
        return write.rest
    }

    mutating func append(_ write: Write) { line.append(.operation(write), number: write.number) }

    mutating func appendClose(number: Int) { line.append(.close, number: number) }

    mutating func sent(_ count: Int) {
        guard case .operation(var write) = line.head else { return }
        write.rest = write.rest.dropFirst(count)
        write.isBegun = true
        sentBytes += Int64(count)
        line.replaceHead(by: .operation(write))
    }

    /// Removes the first entry of the queue if it can be completed. Returns `nil` if it cannot, or the queue is empty.
    mutating func next() -> Step? {
        switch line.head {
        case nil: return nil
        case .close:
            line.removeHead()
            isDone = true
            return .close
        case .operation(let write):
            guard isDone || write.rest.isEmpty else { return nil }
            line.removeHead()
            return .finish(write, isDone ? .closed("writing") : nil)
        }
    }

    /// Removes a write.
    mutating func giveUp(_ number: Int) -> Write? { line.remove(number) }

    /// Removes all writes.
    mutating func removeAll() -> [Write] { line.removeAll() }
}
