package import Foundation
package import OfflineQueue

extension ControlMessage {
    /// The response to `GET /v1/requests`.
    package struct List: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var requests: [Listed]
        /// The number of requests of the whole queue in each state.
        package var counts: QueueCounts
        /// The value of `after` for the next page; `nil` on the last page.
        package var next: String?
    }

    /// The response to `GET /v1/ids?prefix=TEXT`: ids that begin with the text, sorted. An id equal to the text comes
    /// first.
    package struct IDs: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var ids: [String]
    }
}

extension ControlMessage {
    /// What callers may read of a request that another user has submitted.
    package struct Redacted: Codable, Hashable, Sendable {
        package var id: String
        package var state: QueuedRequest.State
        package var host: String
        /// Always `true`. Distinguishes the message from one with all members.
        package var redacted = true
    }

    /// What `GET /v1/requests/{id}` returns of a request that another user has submitted.
    package struct RedactedDetails: Codable, Hashable, Sendable {
        package var request: Redacted
    }

    /// A message with all members, or with those that the caller may read.
    package enum Visible<Whole: Codable & Hashable & Sendable, Part: Codable & Hashable & Sendable>: Codable,
        Hashable, Sendable
    {
        case whole(Whole)
        case part(Part)

        package init(from decoder: any Decoder) throws {
            if let part = try? Part(from: decoder) {
                self = .part(part)
            } else {
                self = .whole(try Whole(from: decoder))
            }
        }

        package func encode(to encoder: any Encoder) throws {
            switch self {
            case .whole(let message): try message.encode(to: encoder)
            case .part(let message): try message.encode(to: encoder)
            }
        }

        /// The message with all members; `nil` if the caller may not read them.
        package var whole: Whole? {
            if case .whole(let message) = self { message } else { nil }
        }
    }

    /// A request in a list.
    package typealias Listed = Visible<QueuedRequest, Redacted>

    /// The response to `GET /v1/requests/{id}`.
    package typealias Shown = Visible<RequestDetails, RedactedDetails>
}

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
