internal import NetwatchEventLoop

/// Passes changes of lanes from the store to the queue. The buffer holds at most one record per lane, so that it does
/// not grow with the number of changes. A new record is merged with the lane's record that is still in the buffer.
package final class LaneChanges: Sendable {
    private struct State {
        var waiting: [Int64: LaneRecord] = [:]
    }

    private let state = Lock(State())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    package init() {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Buffers records of changed lanes and wakes the reader.
    package func post(_ records: [LaneRecord]) {
        guard !records.isEmpty else { return }
        state.withLock { state in
            for record in records { state.waiting[record.id] = record.joined(with: state.waiting[record.id]) }
        }
        signal.yield()
    }

    /// Waits for a change, and returns the lanes that changed since the last call. Returns an empty array once
    /// ``finish()`` was called. Only one task may call this.
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

    /// Ends the stream of changes. Called when the store is closed.
    package func finish() {
        signal.finish()
    }
}

extension LaneRecord {
    /// Returns the newer record, with three properties of the older one. The earlier due time is kept, because a record
    /// may cover only the rows that its transaction read. ``LaneRecord/wasEmpty`` is kept, because the lane may have
    /// been empty between the two changes, and ``LaneRecord/wasReleased``, because the release is still to be handled.
    fileprivate func joined(with older: LaneRecord?) -> LaneRecord {
        guard let older else { return self }
        return LaneRecord(
            id: id,
            key: key,
            notBefore: notBefore,
            due: isPaused ? nil : [due, older.due].compactMap { $0 }.min(),
            isPaused: isPaused,
            wasEmpty: wasEmpty || older.wasEmpty,
            wasReleased: wasReleased || older.wasReleased
        )
    }
}
