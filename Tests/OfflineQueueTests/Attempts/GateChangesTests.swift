internal import Testing

@testable internal import OfflineQueue

/// The buffer between the path monitor and the queue.
@Suite(.timeLimit(.minutes(5))) struct GateChangesTests {
    private func change(_ host: String, watch: UInt64, generation: UInt64) -> GateChanges.Change {
        GateChanges.Change(endpoint: .https(host), watch: watch, state: .reachable(generation: generation))
    }

    @Test func `the reader gets the newest state of each endpoint, and none of a watch that has ended`() async
    {
        let changes = GateChanges()
        changes.post(change("b", watch: 2, generation: 1))
        changes.post(change("a", watch: 1, generation: 1))
        changes.post(change("a", watch: 1, generation: 2))
        changes.post(change("b", watch: 3, generation: 1))
        changes.post(change("b", watch: 2, generation: 9))
        let newest = [change("a", watch: 1, generation: 2), change("b", watch: 3, generation: 1)]
        #expect(await changes.next() == newest)
        let reading = Task { await changes.next() }
        changes.post(change("a", watch: 1, generation: 3))
        #expect(await reading.value == [change("a", watch: 1, generation: 3)])
    }

    @Test func `a cancelled reader gets nothing`() async {
        let changes = GateChanges()
        let reading = Task { await changes.next() }
        reading.cancel()
        #expect(await reading.value.isEmpty)
    }
}
