internal import Foundation
internal import OfflineQueue
internal import Testing

/// The buffer of events that all consumers share.
@Suite(.timeLimit(.minutes(5))) struct EventFeedTests {
    private let feed = EventFeed()

    private func publish(_ ids: ClosedRange<Int>) {
        feed.publish(
            ids.map { id in
                var event = QueueEvent(.enqueued, at: start.date)
                event.requestID = "\(id)"
                return event
            }
        )
    }

    private func collect(_ count: Int, of events: QueueEvents) async -> [QueueEvent] {
        var (iterator, found) = (events.makeAsyncIterator(), [QueueEvent]())
        while found.count < count, let event = await iterator.next() { found.append(event) }
        return found
    }

    @Test func `every consumer receives every event after its subscription`() async {
        let first = QueueEvents(feed.subscribe())
        publish(1...100)
        let second = QueueEvents(feed.subscribe())
        publish(101...200)
        let ids = await collect(200, of: first).compactMap(\.requestID)
        let expected = (1...200).map { (number: Int) -> String in "\(number)" }
        #expect(ids == expected)
        #expect(await collect(100, of: second).compactMap(\.requestID) == Array(expected[100...]))
        #expect(await collect(200, of: first).map(\.number) == Array(1...200))
    }

    @Test func `a consumer that is too far behind receives the number of lost events`() async {
        let slow = QueueEvents(feed.subscribe())
        let count = 5 * EventFeed.capacity
        for _ in 0..<5 { publish(1...EventFeed.capacity) }
        var (iterator, received, lost) = (slow.makeAsyncIterator(), 0, 0)
        while received + lost < count, let event = await iterator.next() {
            if event.kind == .lost { lost += event.lostCount } else { received += 1 }
            #expect(event.number == UInt64(received + lost))
        }
        #expect(received + lost == count)
        #expect(received >= EventFeed.capacity && received <= 2 * EventFeed.capacity)
    }

    @Test func `events that a transaction did not keep count as lost`() async {
        let events = QueueEvents(feed.subscribe())
        publish(1...2)
        feed.publish([QueueEvent(.enqueued, at: start.date)], after: 10)
        let found = await collect(2, of: events)
        #expect(found.map(\.lostCount) == [12, 0] && found.map(\.number) == [12, 13])
    }

    @Test func `a waiting consumer is resumed by an event, and by the end`() async {
        let events = QueueEvents(feed.subscribe())
        async let ids = events.reduce(into: []) { $0.append($1.requestID) }
        publish(1...1)
        publish(2...2)
        feed.finish()
        #expect(await ids == ["1", "2"])
    }

    @Test func `cancelling its task ends a waiting consumer`() async {
        let events = QueueEvents(feed.subscribe())
        let task = Task { await events.reduce(into: 0) { count, _ in count += 1 } }
        task.cancel()
        #expect(await task.value == 0)
    }

    @Test func `nothing is kept without a consumer, and no consumer resumes across that time`() async {
        var first: QueueEvents? = QueueEvents(feed.subscribe())
        publish(1...3)
        #expect(first?.resumed(after: 1) != nil && first?.resumed(after: 4) == nil)
        first = nil
        publish(4...4)
        let second = QueueEvents(feed.subscribe())
        #expect(second.resumed(after: 3) == nil)
        publish(5...5)
        let found = await collect(1, of: second)
        #expect(found.map(\.requestID) == ["5"] && found.map(\.number) == [5])
        #expect(second.resumed(after: second.startNumber) != nil)
    }
}
