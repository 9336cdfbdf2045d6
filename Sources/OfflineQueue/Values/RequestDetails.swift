public import Foundation

/// All details of one request.
public struct RequestDetails: Hashable, Sendable {
    /// The request as ``OfflineQueue/list(_:)`` returns it.
    public internal(set) var summary: QueuedRequest
    /// The reason why ``headers``, ``idempotencyKey`` and ``response`` are left out although the queue may have stored
    /// them: they are encrypted, and either their encryption key is missing or they were changed. `nil` if nothing is
    /// left out.
    public let unreadable: String?
    /// The options with which the request was enqueued, except those of its lane and its times, and with the current
    /// credential.
    public let options: EnqueueOptions
    /// The header lines that the caller gave, without the idempotency key.
    public let headers: [QueueRequest.Header]
    /// The value of the idempotency key, if there is one.
    public let idempotencyKey: String?
    /// The id of the request that replaced this one, if this one is superseded. `nil` if the queue no longer knows the
    /// newer request, and in a completion handler.
    ///
    /// The queue does not store the id, but searches by lane, replace key and times. After the wall clock was set, or
    /// if the newer request was imported from a machine whose clock was ahead, it may find none. If this request was
    /// dead and was retried while a newer one was in flight, the id may be that of the newer one, although a third
    /// request replaced this one.
    public let replacedBy: String?
    /// The ids of the requests that must still be delivered before this one is sent.
    public let dependencies: [String]
    /// The id of the request that reports the end of this one to ``EnqueueOptions/onDone``. `nil` before the end, without a webhook,
    /// and after the record of the webhook was removed.
    public let webhookID: String?
    /// The id of the request whose end this request reports; `nil` if this request is not a webhook.
    public var webhookOf: String? { options.webhookOf }
    /// The timeouts of the next attempt. They double when a timeout ends an attempt; see ``AttemptTimeouts/response``.
    public let timeouts: AttemptTimeouts
    /// The earliest time of the next attempt after a timeout, by the wall clock. Until then, the server may still be
    /// executing the attempt that the timeout ended. `nil` if there is no such time or it has passed.
    public let busyUntil: Date?
    /// The last 32 attempts, oldest first.
    public let attempts: [RecordedAttempt]
    /// The last response, if the request is finished and the server responded.
    public let response: RecordedResponse?
}

/// The record of an attempt.
public struct RecordedAttempt: Hashable, Sendable {
    /// The number of the attempt, counted from 1 over all attempts of the request.
    public let number: Int
    /// The start time, by the wall clock.
    public let started: Date
    /// The duration of the attempt; zero if the process ended during the attempt.
    public let duration: Duration
    /// The status of the response, if one was received.
    public let status: Int?
    /// libcurl's result code (`CURLcode`); 0 if a response was received.
    public let curlCode: Int
    /// The first 512 bytes of the error; `nil` if there was none.
    public let error: String?
}

/// The record of a response.
public struct RecordedResponse: Hashable, Sendable {
    /// The status.
    public let status: Int
    /// The stored header fields, at most 64 KiB. Fields beyond that are left out.
    ///
    /// Only fields that describe the response are stored: fields about the content, caching, request ids and rate
    /// limits, and fields such as `Location`, `Link`, `Retry-After` and `Server`. `Set-Cookie` and fields that may
    /// contain a token are not stored. The URLs in `Location`, `Content-Location` and `Link` are stored without their
    /// user information, query and fragment.
    public let headers: [QueueRequest.Header]
    /// The first 64 KiB of the body, with `REDACTED` in place of the secrets that the queue added to the request; see
    /// <doc:UsingCredentials#When-a-server-repeats-a-credential>.
    public let body: Data
    /// Whether ``body`` is incomplete: it was longer than 64 KiB, took longer than the time limit, the connection
    /// ended early, or the body cannot be searched for secrets and is not stored.
    public let isTruncated: Bool

    package init(status: Int, headers: [QueueRequest.Header], body: Data, isTruncated: Bool) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isTruncated = isTruncated
    }
}

/// What the scan of a queue has found. The queue scans its store at intervals, see
/// ``OfflineQueue/OfflineQueue/Configuration/scanInterval``.
public struct QueueScan: Hashable, Sendable {
    /// The maximum number of problems in ``findings``: 20.
    public static let maximumFindings = 20

    /// When the last complete scan or verification ended, by the wall clock. `nil` if none has ended.
    public internal(set) var completed: Date?
    /// When the scan in progress began, by the wall clock. `nil` if none is in progress. A restart of the queue does
    /// not end a scan.
    public internal(set) var began: Date?
    /// The first problems that the last complete scan and the scan in progress have found. All of them are damage.
    public internal(set) var findings: [QueueVerification.Finding] = []
    /// The number of these problems, including those that are not in ``findings``.
    ///
    /// A problem remains in this number until a complete scan or ``OfflineQueue/OfflineQueue/verify()`` does not find
    /// it any more.
    public internal(set) var findingCount = 0

    /// Whether a scan has found damage.
    public var isDamaged: Bool { findingCount > 0 }

    package init() {}
}
