/// The writes that wait, and how much of the first has been sent.
struct StreamWrites {
    struct Write {
        let number: Int
        /// What is still to be sent.
        var rest: ArraySlice<UInt8>
        var isBegun = false
        let finish: @Sendable (TransferFailure?) -> Void
    }

    /// What is to be done.
    enum Step {
        case finish(Write, TransferFailure?)
        case close
    }

    private var line = StreamLine<Write>()
    /// Whether nothing will be sent any more.
    private(set) var isDone = false
    /// All that was sent.
    private(set) var sentBytes: Int64 = 0

    /// What may be sent now.
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

    /// Takes the first of the line out once its time has come. Until there is no more.
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

    /// Takes a write out.
    mutating func giveUp(_ number: Int) -> Write? { line.remove(number) }

    /// Takes all writes out.
    mutating func removeAll() -> [Write] { line.removeAll() }
}
