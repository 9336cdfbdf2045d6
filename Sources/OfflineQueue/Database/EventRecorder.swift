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

/// The temporary triggers that report changed rows to an ``EventRecorder``.
enum EventTriggers {
    private static let name = "queue_event"

    /// The SQL function that the triggers call. Its arguments are those of ``RowChange/init(_:)``.
    static func function(_ record: @escaping @Sendable (RowChange) -> Void) -> DatabaseFunction {
        DatabaseFunction(name) { values in
            record(RowChange(values))
            return nil
        }
    }

    static let create = triggers.map { name, event, values in
        "CREATE TEMP TRIGGER \(name) AFTER \(event) BEGIN SELECT \(Self.name)(\(values)); END;"
    }.joined(separator: "\n")

    static let drop = triggers.map { "DROP TRIGGER temp.\($0.name);" }.joined(separator: "\n")

    private static let triggers: [(name: String, event: String, values: String)] = [
        (
            "event_stored", "INSERT ON main.request",
            values("request", "(SELECT state FROM main.history WHERE seq = NEW.seq)", "NEW.state", new)
        ),
        (
            "event_changed",
            """
            UPDATE OF state, hold_reason, next_at, attempts, deferrals, last_error ON main.request
            WHEN (OLD.state, OLD.hold_reason, OLD.last_error) IS NOT (NEW.state, NEW.hold_reason, NEW.last_error)
            OR (NEW.state = 'pending'
                AND (OLD.next_at, OLD.attempts, OLD.deferrals) <> (NEW.next_at, NEW.attempts, NEW.deferrals))
            """,
            values("request", "OLD.state", "NEW.state", new)
                + """
                , (OLD.state, OLD.hold_reason) IS (NEW.state, NEW.hold_reason)
                AND (OLD.next_at, OLD.attempts, OLD.deferrals) = (NEW.next_at, NEW.attempts, NEW.deferrals)
                """
        ),
        (
            "event_credential",
            "UPDATE OF credential ON main.request WHEN OLD.credential IS NOT NEW.credential",
            values("credential", "NEW.state", "NEW.state", new)
        ),
        (
            "event_finished", "INSERT ON main.history",
            values("request", "(SELECT state FROM main.request WHERE seq = NEW.seq)", "NEW.state", finished)
        ),
        (
            "event_dropped", "UPDATE OF state ON main.history",
            values("request", "OLD.state", "NEW.state", finished)
        ),
        // A retry also deletes a row of the history, after it has restored the request.
        (
            "event_removed",
            "DELETE ON main.history WHEN NOT EXISTS (SELECT 1 FROM main.request WHERE seq = OLD.seq)",
            "'request', OLD.host, OLD.label, OLD.id, OLD.state, NULL, NULL, NULL, NULL, NULL, NULL, OLD.tag, OLD.submitter"
        ),
        (
            // A step of the wall clock changes the date `not_before`, but not the closure.
            "event_closed",
            """
            UPDATE OF not_before ON main.lane
            WHEN (OLD.not_before IS NULL, OLD.boot_not_before) IS NOT (NEW.not_before IS NULL, NEW.boot_not_before)
            """,
            "'closure', NEW.host, NEW.label, NEW.not_before, NEW.closed_by, NEW.lane_submitter"
        ),
        (
            "event_paused", "UPDATE OF is_paused ON main.lane WHEN OLD.is_paused <> NEW.is_paused",
            "'pause', NEW.host, NEW.label, NEW.is_paused, NULL, NEW.lane_submitter"
        ),
        (
            "event_queue_paused", "UPDATE OF is_paused ON main.meta WHEN OLD.is_paused <> NEW.is_paused",
            "'pause', NULL, NULL, NEW.is_paused"
        ),
    ]

    private static let lane = """
        (SELECT host FROM main.lane WHERE id = NEW.lane_id), (SELECT label FROM main.lane WHERE id = NEW.lane_id)
        """
    private static let new = (
        lane: lane, rest: "NEW.hold_reason, iif(NEW.state = 'pending', NEW.next_at, NULL)"
    )
    private static let finished = (lane: "NEW.host, NEW.label", rest: "NULL, NULL")

    private static func values(
        _ table: String,
        _ old: String,
        _ state: String,
        _ source: (lane: String, rest: String)
    ) -> String {
        """
        '\(table)', \(source.lane), NEW.id, \(old), \(state), \(source.rest), NEW.attempts, NEW.last_status, NEW.last_error,
        NEW.tag, NEW.submitter, NEW.created_at
        """
    }
}

/// The values of a changed row, in the order of the arguments of ``EventTriggers``. After damage a column may hold a
/// value of any type; such a value counts as missing.
struct RowChange: Sendable {
    private let values: [DatabaseValue]

    init(_ values: [DatabaseValue]) {
        self.values = values
    }

    private func value<Value: DatabaseValueConvertible>(_ index: Int) -> Value? {
        values.indices.contains(index) ? Value.fromDatabaseValue(values[index]) : nil
    }

    private func time(_ index: Int) -> Date? {
        (value(index) as Int64?).map { Timestamp(milliseconds: $0).date }
    }

    private var host: String? { value(1) }
    private var label: String? { (value(2) as String?).flatMap { $0.isEmpty ? nil : $0 } }

    /// The event; `nil` if only the error message of the request has changed.
    func event(at date: Date, cause: EventRecorder.Cause?) -> QueueEvent? {
        var event: QueueEvent
        switch value(0) as String? {
        case "request":
            guard value(14) as Bool? != true, let kind = requestKind(cause) else { return nil }
            event = QueueEvent(kind, at: date)
            describe(&event)
        case "credential":
            event = QueueEvent(.credentialChanged, at: date)
            describe(&event)
        case "closure":
            event = QueueEvent(time(3) == nil ? .laneOpened : .laneClosed, at: date)
            event.due = time(3)
            event.status = event.due == nil ? nil : value(4)
            event.submitter = value(5)
        default:
            event = QueueEvent(pauseKind, at: date)
            event.submitter = value(5)
        }
        event.host = host
        event.lane = label
        return event
    }

    private var pauseKind: QueueEvent.Kind {
        switch (host == nil, value(3) ?? false) {
        case (true, true): .queuePaused
        case (true, false): .queueResumed
        case (false, true): .lanePaused
        case (false, false): .laneResumed
        }
    }
}

// MARK: - Requests

extension RowChange {
    var id: String? { value(3) }
    private var oldState: QueuedRequest.State? { (value(4) as String?).flatMap(QueuedRequest.State.init) }
    private var newState: QueuedRequest.State? { (value(5) as String?).flatMap(QueuedRequest.State.init) }
    /// The error message of the request.
    var reason: String? { value(10) }

    private func describe(_ event: inout QueueEvent) {
        event.requestID = id
        event.oldState = oldState
        event.newState = newState
        event.holdReason = (value(6) as String?).flatMap(HoldReason.init)
        event.due = time(7)
        event.attempts = value(8)
        event.status = value(9)
        event.reason = reason
        event.tag = value(11)
        event.submitter = value(12)
        event.stored = time(13)
    }

    /// What has happened to a request, from its states before and after.
    private func requestKind(_ cause: EventRecorder.Cause?) -> QueueEvent.Kind? {
        switch (oldState, newState) {
        case (nil, .pending?), (nil, .blocked?), (nil, .held?), (nil, .inflight?): .enqueued
        case (_, .delivered?): .delivered
        case (_, .dead?): cause == .expiry ? .expired : .dead
        case (_, .cancelled?): .cancelled
        case (_, .superseded?): .superseded
        case (_, .inflight?): .started
        case (_, .held?): .held
        case (_, .pending?) where cause == .retry: .retried
        case (.inflight?, .pending?): .postponed
        case (.held?, .pending?), (_, .blocked?): .released
        case (.blocked?, .pending?): .unblocked
        case (.pending?, .pending?): .rescheduled
        // Only a retry makes a finished request pending.
        case (_, .pending?): .retried
        case (_, nil): .removed
        }
    }
}
