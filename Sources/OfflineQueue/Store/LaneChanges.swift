internal import Synchronization

/// The lanes that have new work. However many changes are posted, at most one record per lane is buffered, the newest.
package final class LaneChanges: Sendable {
    private struct State {
        var waiting: [Int64: LaneRecord] = [:]
    }

    private let state = Mutex(State())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    package init() {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    package func post(_ records: [LaneRecord]) {
        guard !records.isEmpty else { return }
        state.withLock { state in
            for record in records { state.waiting[record.id] = record.joined(with: state.waiting[record.id]) }
        }
        signal.yield()
    }

    /// Waits for changes and returns those since the last call. Returns an empty array once the store is closed.
    /// Supports a single reader.
    package func next() async -> [LaneRecord] {
        for await _ in signals {
            let records = state.withLock { state in
                defer { state.waiting = [:] }
                return state.waiting.values.sorted { $0.id < $1.id }
            }
            if !records.isEmpty { return records }
        }
        return []
    }

    package func finish() {
        signal.finish()
    }
}

extension LaneRecord {
    /// Returns the newer record with what must not be lost of the older one: the earlier due time, because each record
    /// may cover only the rows that its transaction has read, and that the lane was empty.
    fileprivate func joined(with older: LaneRecord?) -> LaneRecord {
        guard let older else { return self }
        return LaneRecord(
            id: id,
            key: key,
            notBefore: notBefore,
            due: isPaused ? nil : [due, older.due].compactMap { $0 }.min(),
            isPaused: isPaused,
            wasEmpty: wasEmpty || older.wasEmpty
        )
    }
}
