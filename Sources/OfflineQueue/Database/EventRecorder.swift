internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

/// Collects the events of a transaction and publishes them after its commit.
///
/// Triggers report every change of a row, so no path of the code can change a state without an event. The triggers are
/// temporary: they belong to the writing connection, not to the schema, and exist only while there is a consumer.
///
/// All methods run on the database's queue.
final class EventRecorder: Sendable {
    /// A cause that the changed rows do not show.
    enum Cause: Hashable {
        case retry, expiry
    }

    fileprivate struct State {
        var isInstalled = false
        var date = Date.distantPast
        var cause: Cause?
        /// The number of events of this transaction that are not in `events` any more.
        var lost = 0
        var events: [QueueEvent] = []
    }

    let feed: EventFeed
    private let state = Lock(State())

    init(_ feed: EventFeed) {
        self.feed = feed
    }

    private var isInstalled: Bool { state.withLock { $0.isInstalled } }

    /// Begins a subscription, and creates the triggers if they do not exist. Must be called between two transactions,
    /// so that the subscription covers whole transactions.
    func subscribe(_ database: Database) throws -> EventFeed.Subscription {
        let subscription = feed.subscribe()
        guard !isInstalled else { return subscription }
        database.add(function: EventTriggers.function { [weak self] in self?.record($0) })
        try database.execute(sql: EventTriggers.create)
        state.withLock { $0.isInstalled = true }
        return subscription
    }

    /// Removes the triggers if there is no consumer any more. Must be called between two transactions.
    func removeUnusedTriggers(_ database: Database) throws {
        guard isInstalled, !feed.isWanted else { return }
        try database.execute(sql: EventTriggers.drop)
        state.withLock { $0.isInstalled = false }
    }

    // MARK: Transactions

    /// Runs one operation of a transaction. If it throws, it has changed nothing, so its events are dropped.
    func operation<Value>(at date: @autoclosure () -> Date, _ body: () throws -> Value) throws -> Value {
        guard isInstalled else { return try body() }
        let date = date()
        let start = state.withLock { state in
            state.date = date
            return state.count
        }
        do {
            return try body()
        } catch {
            state.withLock { $0.removeEvents(from: start) }
            throw error
        }
    }

    /// Runs a part of an operation, whose changes have a cause that the rows do not show.
    func during<Value>(_ cause: Cause?, _ body: () throws -> Value) rethrows -> Value {
        guard let cause, isInstalled else { return try body() }
        state.withLock { $0.cause = cause }
        defer { state.withLock { $0.cause = nil } }
        return try body()
    }

    /// Publishes the events of the transaction that was committed.
    func committed() {
        let (events, lost) = state.withLock { $0.take() }
        if !events.isEmpty { feed.publish(events, after: lost) }
    }

    /// Drops the events of the transaction that was rolled back.
    func rolledBack() {
        _ = state.withLock { $0.take() }
    }

    private func record(_ change: RowChange) {
        state.withLock { $0.add(change) }
    }
}

extension EventRecorder.State {
    var count: Int { lost + events.count }

    fileprivate mutating func take() -> ([QueueEvent], Int) {
        defer { (events, lost) = ([], 0) }
        return (events, lost)
    }

    fileprivate mutating func removeEvents(from start: Int) {
        events.removeLast(max(0, min(events.count, count - start)))
        lost = min(lost, start)
    }

    fileprivate mutating func add(_ change: RowChange) {
        guard let event = change.event(at: date, cause: cause) else { return amend(change) }
        // The queue's pause is toggled twice to make a commit sync (`StoreTransaction.touch`).
        if event.cancels(events.last) {
            events.removeLast()
            return
        }
        events.append(event)
        // One edit may change any number of requests, so the transaction keeps only as many events as the feed does.
        if events.count > 2 * EventFeed.capacity {
            lost += events.count - EventFeed.capacity
            events.removeFirst(events.count - EventFeed.capacity)
        }
    }

    /// Adds an error message to the event that the previous statement has caused for the same request.
    private mutating func amend(_ change: RowChange) {
        guard let last = events.indices.last, let reason = change.reason, let id = change.id,
            events[last].requestID == id
        else { return }
        events[last].reason = reason
    }
}

extension QueueEvent {
    /// Whether the event undoes the previous one, so that both together change nothing.
    fileprivate func cancels(_ previous: QueueEvent?) -> Bool {
        switch (previous?.kind, kind) {
        case (.queuePaused, .queueResumed), (.queueResumed, .queuePaused): true
        default: false
        }
    }
}
