package import Foundation

extension ControlMessage {
    /// The `data` of an event of `GET /v1/events`.
    package struct Event: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The id with which a client resumes the stream after this event.
        package var id: String
        /// The kind of the event: a case of `QueueEvent.Kind`, or `reset`.
        package var event: String
        package var time: Date
        /// The id of the request; `nil` for an event of a lane or of the whole queue.
        package var request: String?
        package var host: String?
        package var lane: String?
        package var tag: String?
        /// The id of the user who submitted the request, or whose requests the lane has.
        package var submitter: UInt32?
        package var oldState: String?
        package var state: String?
        package var holdReason: String?
        package var due: Date?
        package var attempts: Int?
        package var status: Int?
        package var reason: String?
        /// The number of lost events, for the kind `lost`.
        package var lost: Int?

        package init(id: String, event: String, time: Date) {
            self.id = id
            self.event = event
            self.time = time
        }
    }
}
