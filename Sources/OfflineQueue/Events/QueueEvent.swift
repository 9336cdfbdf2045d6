public import Foundation

/// A committed change of a request, of a lane or of the whole queue. ``OfflineQueue/events`` delivers them.
public struct QueueEvent: Hashable, Sendable {
    /// What has changed. The raw values are the names in the control API.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A request was stored: by a caller, or by an import.
        case enqueued
        /// An attempt begins.
        case started
        /// An attempt has ended, and the request waits for the next one until ``QueueEvent/due``.
        case postponed
        /// The time of the next attempt has changed, for example because of a flush or a clock step.
        case rescheduled
        /// A user or program retried the request.
        case retried
        /// The dependencies of a blocked request were delivered.
        case unblocked
        /// The request is held, or the reason for its hold has changed.
        case held
        /// A hold has ended. The request is pending, or blocked by its dependencies.
        case released
        /// A user or program changed the credential of the request.
        case credentialChanged = "credential_changed"
        /// The server responded as expected.
        case delivered
        /// The queue gave the request up.
        case dead
        /// The queue gave the request up because its time to live or its deadline had passed.
        case expired
        /// A user or program cancelled the request.
        case cancelled
        /// A newer request with the same replace key replaced it.
        case superseded
        /// The record of a finished request was removed, because its retention period was over.
        case removed
        /// A server closed the lane with `Retry-After` until ``QueueEvent/due``. No event reports the end of that time.
        case laneClosed = "lane_closed"
        /// A flush opened a lane that a server had closed.
        case laneOpened = "lane_opened"
        /// A user or program paused the lane.
        case lanePaused = "lane_paused"
        /// A user or program resumed the lane.
        case laneResumed = "lane_resumed"
        /// A user or program paused the whole queue.
        case queuePaused = "queue_paused"
        /// A user or program resumed the whole queue.
        case queueResumed = "queue_resumed"
        /// Events were dropped, because this consumer was too slow. ``QueueEvent/lostCount`` is their number.
        case lost
    }

    /// The number of the event within this run of the queue, which increases by 1 with each event. For ``Kind/lost``,
    /// the number of the last event that was lost.
    ///
    /// Numbers are skipped while no consumer exists.
    public internal(set) var number: UInt64 = 0
    /// The time of the change, by the wall clock.
    public let date: Date
    /// What has changed.
    public let kind: Kind
    /// The request's id; `nil` for an event that concerns no single request.
    public var requestID: String?
    /// The host of the request's URL or of the lane; `nil` for an event of the whole queue.
    public var host: String?
    /// The lane's label; `nil` for the origin's common lane.
    public var lane: String?
    /// The request's tag; `nil` without one.
    public var tag: String?
    /// The id of the user who enqueued the request, or whose requests the lane has; `nil` if that is not known.
    package var submitter: UInt32?
    /// When the request was stored, by the wall clock; `nil` if that is not known.
    package var stored: Date?
    /// The state of the request before the change; `nil` for a new request.
    public var oldState: QueuedRequest.State?
    /// The state of the request after the change; `nil` for ``Kind/removed``.
    public var newState: QueuedRequest.State?
    /// The reason for the hold; `nil` if the request is not held.
    public var holdReason: HoldReason?
    /// The time at which a pending request is due, or until which a lane is closed.
    public var due: Date?
    /// The number of attempts that count towards ``EnqueueOptions/maximumAttempts``, including one in progress.
    public var attempts: Int?
    /// The status of the last response, if there was one; for ``Kind/laneClosed``, the status of the response that
    /// closed the lane.
    public var status: Int?
    /// The error of the last attempt, the reason why the queue gave the request up, or the dependency that failed.
    public var reason: String?
    /// The number of events that were lost; 0 for every kind except ``Kind/lost``.
    public var lostCount = 0

    package init(_ kind: Kind, at date: Date) {
        self.kind = kind
        self.date = date
    }

    /// - Parameter last: The number of the last event that was lost.
    static func lost(_ count: Int, last: UInt64) -> QueueEvent {
        var event = QueueEvent(.lost, at: Date())
        event.number = last
        event.lostCount = count
        return event
    }
}
