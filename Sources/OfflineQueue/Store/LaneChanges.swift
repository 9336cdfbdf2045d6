internal import Synchronization

/// The lanes that have something new to do. However many changes come, what waits to be read is at most one record
/// of each lane, the newest.
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

    /// The changes since the last call; waits for one. Empty once the store is closed. For one reader.
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
    /// The newer record, due as soon as either says: who made the older may not have seen the newer's row.
    fileprivate func joined(with older: LaneRecord?) -> LaneRecord {
        guard let older, !isPaused else { return self }
        return LaneRecord(
            id: id,
            key: key,
            notBefore: notBefore,
            due: [due, older.due].compactMap { $0 }.min(),
            isPaused: isPaused,
            isEmpty: isEmpty
        )
    }
}
