internal import ClientCore
public import Foundation
internal import NetwatchEventLoop

/// All details of one request.
public struct RequestDetails: Hashable, Sendable {
    /// The request as ``OfflineQueue/list(_:)`` returns it.
    public internal(set) var summary: QueuedRequest
    /// The reason why ``headers``, ``idempotencyKey`` and ``response`` are left out although the queue may have stored
    /// them: they are encrypted, and either their encryption key is missing or they were changed. `nil` if nothing is
    /// left out.
    public let unreadable: String?
    /// The options with which the request was enqueued, and the current credential. Those of the lane, the times,
    /// the key and the dependencies have their defaults, and so have ``EnqueueOptions/allowsSignature``,
    /// ``EnqueueOptions/durability`` and ``EnqueueOptions/whenFull``.
    public internal(set) var options: EnqueueOptions
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

// MARK: - JSON

/// The members of the control API. `options` has those of ``options`` that differ from their defaults, without the id. Secrets in the URL
/// of the webhook are replaced by `REDACTED`.
extension RequestDetails: Codable {
    private enum CodingKeys: CodingKey {
        case request, unreadable, options, headers, idempotencyKey, replacedBy, dependencies, webhook,
            webhookOf
        case connectTimeoutSeconds, responseTimeoutSeconds, totalTimeoutSeconds, busyUntil, attempts, response
    }

    /// Decodes the details.
    ///
    /// - Throws: `DecodingError`, or ``QueueError`` for an option that is not accepted.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let summary = try members.decode(QueuedRequest.self, forKey: .request)
        var options = try members.decode(EnqueueOptions.self, forKey: .options)
        options.id = summary.id
        options.webhookOf = try members.decodeIfPresent(String.self, forKey: .webhookOf)
        var timeouts = AttemptTimeouts()
        timeouts.connect = .seconds(try members.decode(Double.self, forKey: .connectTimeoutSeconds))
        timeouts.response = .seconds(try members.decode(Double.self, forKey: .responseTimeoutSeconds))
        timeouts.total = try members.decodeIfPresent(Double.self, forKey: .totalTimeoutSeconds).map {
            .seconds($0)
        }
        self.init(
            summary: summary,
            unreadable: try members.decodeIfPresent(String.self, forKey: .unreadable),
            options: options,
            headers: try members.decodeIfPresent([QueueRequest.Header].self, forKey: .headers) ?? [],
            idempotencyKey: try members.decodeIfPresent(String.self, forKey: .idempotencyKey),
            replacedBy: try members.decodeIfPresent(String.self, forKey: .replacedBy),
            dependencies: try members.decode([String].self, forKey: .dependencies),
            webhookID: try members.decodeIfPresent(String.self, forKey: .webhook),
            timeouts: timeouts,
            busyUntil: try members.decodeIfPresent(Date.self, forKey: .busyUntil),
            attempts: try members.decode([RecordedAttempt].self, forKey: .attempts),
            response: try members.decodeIfPresent(RecordedResponse.self, forKey: .response)
        )
    }

    /// Encodes the details. Header fields that cannot be decrypted are left out.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        var shown = options
        shown.id = nil
        shown.onDone = options.onDone.map {
            Webhook(url: SecretQueryItems.redacting($0.url), credential: $0.credential)
        }
        try members.encode(summary, forKey: .request)
        try members.encodeIfPresent(unreadable, forKey: .unreadable)
        try members.encode(shown, forKey: .options)
        if unreadable == nil || !headers.isEmpty { try members.encode(headers, forKey: .headers) }
        try members.encodeIfPresent(idempotencyKey, forKey: .idempotencyKey)
        try members.encodeIfPresent(replacedBy, forKey: .replacedBy)
        try members.encode(dependencies, forKey: .dependencies)
        try members.encodeIfPresent(webhookID, forKey: .webhook)
        try members.encodeIfPresent(webhookOf, forKey: .webhookOf)
        try members.encode(timeouts.connect / .seconds(1), forKey: .connectTimeoutSeconds)
        try members.encode(timeouts.response / .seconds(1), forKey: .responseTimeoutSeconds)
        try members.encodeIfPresent(timeouts.total.map { $0 / .seconds(1) }, forKey: .totalTimeoutSeconds)
        try members.encodeIfPresent(busyUntil, forKey: .busyUntil)
        try members.encode(attempts, forKey: .attempts)
        try members.encodeIfPresent(response, forKey: .response)
    }
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

extension RecordedAttempt: Codable {
    private enum CodingKeys: CodingKey {
        case number, started, durationSeconds, status, curlCode, error
    }

    /// Decodes a record.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            number: try members.decode(Int.self, forKey: .number),
            started: try members.decode(Date.self, forKey: .started),
            duration: .seconds(try members.decode(Double.self, forKey: .durationSeconds)),
            status: try members.decodeIfPresent(Int.self, forKey: .status),
            curlCode: try members.decode(Int.self, forKey: .curlCode),
            error: try members.decodeIfPresent(String.self, forKey: .error)
        )
    }

    /// Encodes the record.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(number, forKey: .number)
        try members.encode(started, forKey: .started)
        try members.encode(duration / .seconds(1), forKey: .durationSeconds)
        try members.encodeIfPresent(status, forKey: .status)
        try members.encode(curlCode, forKey: .curlCode)
        try members.encodeIfPresent(error, forKey: .error)
    }
}

/// The record of a response.
public struct RecordedResponse: Hashable, Sendable, Codable {
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

    private enum CodingKeys: String, CodingKey {
        case status, headers
        case body = "bodyBase64"
        case isTruncated = "truncated"
    }

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
