internal import NetwatchEventLoop

/// The latest events of a store, in one buffer that all consumers share.
///
/// Each consumer has only a position in the buffer. A slow consumer therefore takes no further memory, and an event
/// is stored once. A consumer whose position has left the buffer has lost events, and receives their number.
package final class EventFeed: Sendable {
    /// The minimum number of events that a consumer can be behind without losing any: 4096. The buffer holds up to
    /// twice as many, because it is shortened by half at a time.
    package static let capacity = 4096

    fileprivate struct State {
        var events: [QueueEvent] = []
        /// The number of the next event.
        var next: UInt64 = 1
        var subscriptions = 0
        var isFinished = false

        /// The number of the first event in the buffer.
        var first: UInt64 { next - UInt64(events.count) }
    }

    /// A random text that identifies this run of the queue. Numbers of events are valid only within one run.
    package let run = String(UInt64.random(in: 0 ... .max), radix: 36)

    private let state = Lock(State())
    private let waiters = ChangeWaiters()

    package init() {}

    /// Whether events must be recorded.
    var isWanted: Bool { state.withLock { $0.subscriptions > 0 && !$0.isFinished } }
}

// MARK: - Publishing

extension EventFeed {
    /// Adds the events of a commit.
    ///
    /// - Parameter lost: The number of events before these that the transaction did not keep.
    package func publish(_ events: [QueueEvent], after lost: Int = 0) {
        let isWanted = state.withLock { state in
            guard state.subscriptions > 0, !state.isFinished else { return false }
            state.append(events, after: lost)
            return true
        }
        if isWanted { waiters.changed() }
    }

    /// Ends all sequences after the events that were published so far. Called when the store is closed
    /// or has failed.
    package func finish() {
        state.withLock { $0.isFinished = true }
        waiters.changed()
    }
}

extension EventFeed.State {
    fileprivate mutating func append(_ new: [QueueEvent], after lost: Int) {
        if lost > 0 {
            next += UInt64(lost)
            events = []
        }
        for var event in new {
            event.number = next
            next += 1
            events.append(event)
        }
        if events.count > 2 * EventFeed.capacity { events.removeFirst(events.count - EventFeed.capacity) }
    }
}

// MARK: - Consuming

extension EventFeed {
    /// The right to read the feed. While one exists, events are recorded.
    package final class Subscription: Sendable {
        let feed: EventFeed
        /// The number of the last event before the subscription.
        let start: UInt64

        fileprivate init(_ feed: EventFeed, start: UInt64) {
            self.feed = feed
            self.start = start
        }

        deinit {
            feed.endSubscription()
        }
    }

    package func subscribe() -> Subscription {
        let start = state.withLock { state in
            state.subscriptions += 1
            return state.next - 1
        }
        return Subscription(self, start: start)
    }

    private func endSubscription() {
        state.withLock { state in
            state.subscriptions -= 1
            guard state.subscriptions == 0 else { return }
            state.events = []
            // Skips a number, so that a consumer cannot resume across the time in which nothing was recorded.
            state.next += 1
        }
    }

    /// Returns whether all events after a number are still in the buffer.
    func holdsEvents(after number: UInt64) -> Bool {
        state.withLock { state in number < state.next && number + 1 >= state.first }
    }

    /// Waits until there is an event after `position`, and returns at most `limit` events. If events after `position`
    /// are no longer in the buffer, the first element is an event of the kind ``QueueEvent/Kind/lost``.
    ///
    /// - Returns: The events; an empty array if the feed has ended or the task is cancelled.
    func next(after position: UInt64, limit: Int) async -> [QueueEvent] {
        while !Task.isCancelled {
            let generation = waiters.generation
            let (events, isFinished) = state.withLock {
                ($0.events(after: position, limit: limit), $0.isFinished)
            }
            if !events.isEmpty || isFinished { return events }
            try? await waiters.wait(after: generation)
        }
        return []
    }

    func published(after position: UInt64, limit: Int) -> [QueueEvent] {
        state.withLock { $0.events(after: position, limit: limit) }
    }
}

extension EventFeed.State {
    fileprivate func events(after position: UInt64, limit: Int) -> [QueueEvent] {
        guard position + 1 < next else { return [] }
        guard position + 1 >= first else { return [.lost(Int(first - 1 - position), last: first - 1)] }
        let begin = Int(position + 1 - first)
        return Array(events[begin..<min(begin + limit, events.count)])
    }
}

/// The changes of a queue that are committed after ``OfflineQueue/events`` has returned, in the order of their commits.
///
/// Each value of this type is a separate consumer, and so is each iterator of it. Iterators begin with the first event
/// after the creation of the value. The sequence ends when the queue stops, its store fails, or the iterating task
/// is cancelled.
///
/// The consumers share a buffer of at least 4096 events. A consumer that is further behind loses the oldest events. It
/// then receives one event of the kind ``QueueEvent/Kind/lost`` with their number. After that event, read the states of
/// the requests with ``OfflineQueue/list(_:)``.
public struct QueueEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = QueueEvent
    /// Iterating throws no errors.
    public typealias Failure = Never

    private let subscription: EventFeed.Subscription
    private let position: UInt64

    package init(_ subscription: EventFeed.Subscription) {
        self.subscription = subscription
        position = subscription.start
    }

    private init(_ subscription: EventFeed.Subscription, after position: UInt64) {
        self.subscription = subscription
        self.position = position
    }

    /// The text that identifies this run of the queue.
    package var run: String { subscription.feed.run }

    /// The number of the last event before the first one of the sequence.
    package var startNumber: UInt64 { position }

    /// Returns a sequence that begins after the event with the given number; `nil` if some later events are no longer
    /// known.
    package func resumed(after number: UInt64) -> QueueEvents? {
        guard subscription.feed.holdsEvents(after: number) else { return nil }
        return QueueEvents(subscription, after: number)
    }

    /// Creates an iterator that begins with the first event after the creation of the sequence.
    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: subscription, position: position)
    }

    /// An iterator over the events of a queue.
    public struct Iterator: AsyncIteratorProtocol {
        /// The number of events that are copied from the shared buffer at once.
        private static let batch = 64

        fileprivate let subscription: EventFeed.Subscription
        fileprivate var position: UInt64
        private var waiting: ArraySlice<QueueEvent> = []

        fileprivate init(subscription: EventFeed.Subscription, position: UInt64) {
            self.subscription = subscription
            self.position = position
        }

        /// Returns the next event; `nil` when the queue has stopped, its store has failed, or the task is
        /// cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> QueueEvent? {
            if waiting.isEmpty { waiting = await nextBatch()[...] }
            return waiting.popFirst()
        }

        /// Waits for an event and returns up to 64 events; an empty array at the end. Must not be mixed with `next()`.
        package mutating func nextBatch(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> [QueueEvent] {
            let events = await subscription.feed.next(after: position, limit: Self.batch)
            position = events.last?.number ?? position
            return events
        }

        /// Returns up to 64 events that were published already, without waiting. Must not be mixed with `next()`.
        package mutating func publishedBatch() -> [QueueEvent] {
            let events = subscription.feed.published(after: position, limit: Self.batch)
            position = events.last?.number ?? position
            return events
        }
    }
}
