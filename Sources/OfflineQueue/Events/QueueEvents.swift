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
