internal import Foundation
internal import GRDB

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
