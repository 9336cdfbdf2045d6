internal import Foundation
internal import OfflineQueue

/// The state of a queue as a consumer of its events knows it.
struct EventReplay {
    /// The properties of a request that events report.
    struct Request: Equatable {
        var state: QueuedRequest.State
        var holdReason: HoldReason?
        var due: Int64?
        var attempts: Int?
        var status: Int?
        var reason: String?
    }

    struct Mismatch: Error, CustomStringConvertible {
        let event: QueueEvent
        let known: QueuedRequest.State?

        var description: String {
            "the request was \(known.map { "\($0)" } ?? "unknown") before the event \(event)"
        }
    }

    private(set) var requests: [String: Request] = [:]
    private(set) var isPaused = false
    /// The host and the label of each paused lane.
    private(set) var pausedLanes: Set<String> = []

    /// - Throws: ``Mismatch`` if the event does not follow from the events before it.
    mutating func apply(_ event: QueueEvent) throws(Mismatch) {
        let lane = "\(event.host ?? "") \(event.lane ?? "")"
        switch event.kind {
        case .queuePaused: isPaused = true
        case .queueResumed: isPaused = false
        case .lanePaused: pausedLanes.insert(lane)
        case .laneResumed: pausedLanes.remove(lane)
        case .laneClosed, .laneOpened: break
        default: try applyRequest(event)
        }
    }

    private mutating func applyRequest(_ event: QueueEvent) throws(Mismatch) {
        guard let id = event.requestID, requests[id]?.state == event.oldState else {
            throw Mismatch(event: event, known: event.requestID.flatMap { requests[$0]?.state })
        }
        requests[id] = event.newState.map {
            Request(
                state: $0,
                holdReason: event.holdReason,
                due: event.due.map { Timestamp($0).milliseconds },
                attempts: event.attempts,
                status: event.status,
                reason: event.reason
            )
        }
    }

    /// The same properties of the requests that a store lists, by id.
    static func requests(_ listed: [QueuedRequest]) -> [String: Request] {
        Dictionary(
            uniqueKeysWithValues: listed.map { request in
                (
                    request.id,
                    Request(
                        state: request.state,
                        holdReason: request.holdReason,
                        due: request.requestDue.map { Timestamp($0).milliseconds },
                        attempts: request.attempts,
                        status: request.status,
                        reason: request.lastError
                    )
                )
            }
        )
    }
}
