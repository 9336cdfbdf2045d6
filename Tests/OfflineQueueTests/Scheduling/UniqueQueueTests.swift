internal import Testing

@testable internal import OfflineQueue

@Suite struct UniqueQueueTests {
    @Test func `keys are returned in order, without removed ones`() {
        var line = UniqueQueue<Int>()
        for key in [1, 2, 3, 2] { line.append(key) }
        line.remove(1)
        #expect([line.removeFirst(), line.removeFirst(), line.removeFirst()] == [2, 3, nil])
        #expect(line.isEmpty)
    }

    @Test func `a key that is repeatedly added and removed leaves no entries`() {
        var line = UniqueQueue<Int>()
        line.append(0)
        for _ in 0..<10_000 {
            line.append(1)
            line.remove(1)
        }
        line.append(2)
        #expect([line.removeFirst(), line.removeFirst(), line.removeFirst()] == [0, 2, nil])
        #expect(line.memory < 200)
    }
}
