public import Foundation

/// All details of one request.
public struct RequestDetails: Hashable, Sendable {
    /// The part that ``OfflineQueue/list(_:)`` returns.
    public internal(set) var summary: QueuedRequest
    /// The header lines as given, without the idempotency key.
    public let headers: [QueueRequest.Header]
    /// The value of the idempotency key, if there is one.
    public let idempotencyKey: String?
    /// The replace key, if there is one.
    public let replaceKey: String?
    /// The ids of the requests that it still waits for.
    public let dependencies: [String]
    /// Whether the request is never sent twice; see ``EnqueueOptions/isAtMostOnce``.
    public let isAtMostOnce: Bool
    /// The timeouts of the next attempt.
    public let timeouts: AttemptTimeouts
    /// The time until which the server may still execute an attempt that a timeout ended, by the wall clock. No attempt
    /// starts earlier. `nil` if there is no such attempt.
    public let busyUntil: Date?
    /// The latest attempts, oldest first; at most 32 are kept.
    public let attempts: [RecordedAttempt]
    /// The last response, if the request has finished and received one.
    public let response: RecordedResponse?
}

/// A stored attempt.
public struct RecordedAttempt: Hashable, Sendable {
    /// The number of the attempt, counted from 1 over all attempts of the request.
    public let number: Int
    /// The start time, by the wall clock.
    public let started: Date
    /// The duration.
    public let duration: Duration
    /// The status of the response, if one was received.
    public let status: Int?
    /// libcurl's result code (`CURLcode`); 0 if a response was received.
    public let curlCode: Int
    /// The error, cut after 512 bytes.
    public let error: String?
}

/// A stored response.
public struct RecordedResponse: Hashable, Sendable {
    /// The status.
    public let status: Int
    /// The header fields; at most 64 KiB.
    public let headers: [QueueRequest.Header]
    /// The first 64 KiB of the body.
    public let body: Data
    /// Whether ``body`` is incomplete: it exceeded a limit of size or time, or its connection ended early.
    public let isTruncated: Bool

    package init(status: Int, headers: [QueueRequest.Header], body: Data, isTruncated: Bool) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isTruncated = isTruncated
    }
}
