package import Foundation
package import OfflineQueue

extension ControlMessage {
    /// The response to `GET /v1/requests`.
    package struct List: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var requests: [Listed]
        /// The number of requests of the whole queue in each state.
        package var counts: [String: Int]
        /// The value of `after` for the next page; `nil` on the last page.
        package var next: String?
    }

    /// The response to `GET /v1/ids?prefix=TEXT`: ids that begin with the text, sorted. An id equal to the text comes
    /// first.
    package struct IDs: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var ids: [String]
    }

    /// The summary of a request in the queue.
    package struct Entry: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// `pending`, `blocked`, `inflight`, `held`, `delivered`, `dead`, `cancelled` or `superseded`.
        package var state: String
        package var holdReason: String?
        package var method: String
        package var url: String
        package var lane: String?
        package var fifo: Bool
        package var priority: Int
        /// The tag; `nil` for none.
        package var tag: String?
        /// The id of the user who submitted the request; `nil` if that is not known.
        package var submitter: UInt32?
        package var bodyBytes: Int64
        package var attempts: Int
        /// The number of attempts that did not count, because the network was down, this machine was short of a
        /// resource, the request was dropped during the attempt, or the attempt ended with a hold for `auth`.
        package var deferrals: Int
        package var created: Date
        /// When the request is tried next; `nil` if no time is set.
        package var due: Date?
        /// When a request that is held for `trust` or `auth`, or another one that is held for the same cause, is tried next;
        /// otherwise `nil`.
        package var nextTry: Date?
        /// When the queue gives up the request.
        package var expires: Date?
        package var finished: Date?
        package var status: Int?
        package var lastError: String?
        /// Why the request is not delivered, for people.
        package var reason: String?
        /// What a pending or blocked request waits for: `network`, `portal`, `retry`, `lane`, `slot`, `pace`,
        /// `budget`, `rate`, `constraint`, `resources`, `earlier`, `dependencies`, `time` or `resume`.
        package var waitsFor: String?
        /// The id of the request for which this one waits, if `waitsFor` is `earlier` or `dependencies`; `nil` from
        /// services of earlier versions.
        package var waitsForRequest: String?
        /// When the time window opens for which the request waits; `nil` if it does not wait for one.
        package var windowOpens: Date?
        /// When the closed lane opens again; `nil` while the lane is open.
        package var laneClosedUntil: Date?
        /// The status of the response whose `Retry-After` closed the lane; `nil` if failures closed it.
        package var laneClosedBy: Int?

        /// The end of ``reason`` if the server rejected the request with 401 and the request has no credential.
        package static let noCredential = "the request has no credential"
    }

    /// The response to `GET /v1/requests/{id}`.
    package struct Details: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var request: Entry
        /// Why the header fields, the idempotency key or the response are left out: they cannot be decrypted. `nil` if
        /// nothing is left out.
        package var unreadable: String?
        /// The header lines, each as an array of a name and a value; `nil` if they are left out.
        package var headers: [[String]]?
        package var idempotencyKey: String?
        package var replaceKey: String?
        /// The id of the request that replaced this one; `nil` if none did, or if the queue no longer knows it. In a rare
        /// case it is the id of another request with the same replace key; see `RequestDetails.replacedBy`.
        package var replacedBy: String?
        /// The ids of the requests that this one still waits for.
        package var after: [String]
        package var atMostOnce: Bool
        /// The expected response in the form of `expect`; `nil` for any 2xx response.
        package var expect: String?
        /// The name of the credential that each attempt adds.
        package var credential: String?
        /// The webhook that receives the outcome.
        package var onDone: Webhook?
        /// The id of the webhook that reports the end of the request; `nil` before the end, and when the queue no
        /// longer knows the webhook.
        package var webhook: String?
        /// The id of the request whose outcome this webhook reports; `nil` if the request is not a webhook.
        package var webhookOf: String?
        /// The conditions of the network and the time of day under which the request is sent, like
        /// `unmetered; interface=ethernet,wifi; window=22:00-06:00`.
        package var constraints: String?
        /// The timeouts of the next attempt. All three are `nil` from services of earlier versions.
        /// `totalTimeoutSeconds` is also `nil` if the queue's default applies.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        /// The version of HTTP of the attempts: `1.1` or `2`; `nil` if the request does not have its own.
        package var httpVersion: String?
        /// The request's own statuses after which it is retried, and those after which it is given up; `nil` if there are
        /// none.
        package var retryStatuses: String?
        package var deadStatuses: String?
        /// The time until which the server may still be executing an attempt that timed out. The next attempt waits
        /// until then, except after a `retry`.
        package var busyUntil: Date?
        /// The newest attempts, the oldest of them first.
        package var attempts: [Attempt]
        package var response: Response?
    }

    /// A past attempt to deliver a request.
    package struct Attempt: Codable, Hashable, Sendable {
        /// The number of the attempt, starting at 1.
        package var number: Int
        package var started: Date
        package var durationSeconds: Double
        package var status: Int?
        /// The error code of libcurl (`CURLcode`), 0 if a response arrived.
        package var curlCode: Int
        package var error: String?
    }

    /// The stored response to a finished request.
    package struct Response: Codable, Hashable, Sendable {
        package var status: Int
        package var headers: [[String]]
        /// Base64 of the first 64 KiB of the body.
        package var bodyBase64: String
        /// Whether the body was longer than 64 KiB.
        package var truncated: Bool
    }
}

extension ControlMessage {
    /// What callers may read of a request that another user has submitted.
    package struct Redacted: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        package var state: String
        package var host: String
        /// Always `true`. Distinguishes the message from one with all members.
        package var redacted = true
    }

    /// What `GET /v1/requests/{id}` returns of a request that another user has submitted.
    package struct RedactedDetails: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
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
    package typealias Listed = Visible<Entry, Redacted>

    /// The response to `GET /v1/requests/{id}`.
    package typealias Shown = Visible<Details, RedactedDetails>
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
