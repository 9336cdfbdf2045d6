public import ClientCore
public import Foundation

/// Options for enqueuing a request. The defaults never lose data.
///
/// ```swift
/// var options = EnqueueOptions(lane: "readings", isFIFO: true)
/// options.timeToLive = .seconds(3600)
/// options.tag = "readings"
/// ```
public struct EnqueueOptions: Hashable, Sendable {
    /// The request's id: 1 to 255 bytes of printable ASCII. Default `nil`: a new UUIDv7.
    ///
    /// If the queue already knows the id, enqueuing changes nothing. A caller that chose the id and did not receive the
    /// receipt can therefore enqueue the request again. A request with a known id is refused (`idConflict`) if its
    /// content, its lane, ``priority``, ``expectation``, ``isAtMostOnce``, ``replaceKey``, ``tag``, ``onDone`` or
    /// ``constraints`` is different. Other options of a repeated call have no effect. The queue keeps no body of a
    /// delivered, cancelled or replaced request, and compares the length and the SHA-256 instead.
    public var id: String?
    /// The label of a separate lane within the request's origin (scheme, host and port): 1 to 255 bytes. Default `nil`:
    /// the origin's common lane.
    ///
    /// A lane is a group of requests that share their order and their backoff.
    public var lane: String?
    /// Whether the request's lane is FIFO. Default `false`: the lane is parallel.
    ///
    /// A FIFO lane sends one request at a time, in the order of acceptance. Later requests wait while an earlier one
    /// waits for a retry or is held. They do not wait for a request that was given up. A FIFO lane and a parallel lane
    /// with the same label are two lanes.
    public var isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last. Default 5. In a FIFO lane, it must be 5.
    ///
    /// A waiting request gains one level for each 10 minutes for which it has been due.
    public var priority = EnqueueOptions.defaultPriority
    /// How long the queue tries to deliver the request before it gives the request up: 1 ms to 366 days. Default
    /// 7 days.
    ///
    /// Until the machine reboots, a clock that does not step measures this time. After a reboot the wall clock measures
    /// it, if the kernel reports it as synchronized; see <doc:Guarantees#Clocks>.
    public var timeToLive: Duration = .seconds(7 * 86_400)
    /// The time at which the request is given up even if ``timeToLive`` ends later. Within the next 366 days. Default
    /// `nil`: only ``timeToLive`` applies.
    public var deadline: Date?
    /// The earliest time of the first attempt, by the wall clock: at most 366 days ahead. Default `nil`: no delay. A
    /// time in the past means no delay, too.
    public var notBefore: Date?
    /// The maximum number of attempts, at least 1. Default `nil`: no maximum.
    ///
    /// The request is given up when the last of these attempts fails. Attempts that ``QueuedRequest/deferrals`` counts,
    /// for example because the network was down, do not count here.
    public var maximumAttempts: Int?
    /// The timeouts of an attempt.
    public var timeouts = AttemptTimeouts()
    /// The version of HTTP of the attempts. Default `nil`: the version of the queue's session, which is
    /// `HTTPVersion.http2` unless its `requestOptions` set another one. Requests over plain http always use HTTP/1.1.
    ///
    /// If the response of a server is invalid in HTTP/2, the next attempt uses HTTP/1.1 in any case. With
    /// `HTTPVersion.http1`, the first attempt uses it, too, so that a request with ``isAtMostOnce`` is not held.
    public var httpVersion: HTTPVersion?
    /// The statuses after which the request is retried or given up. Default: none, so each status has its usual meaning;
    /// see <doc:WhatFailuresMean#Response-received>.
    ///
    /// A list of the queue's configuration decides about a status that no list of the request contains.
    public var statusRules = StatusRules()
    /// The key by which a newer request replaces an older one: 1 to 255 bytes of printable ASCII. Default `nil`: the
    /// request replaces none.
    ///
    /// The new request replaces the waiting request of its lane that has the same key. The replaced request becomes
    /// `superseded`. A request in flight is never replaced.
    public var replaceKey: String?
    /// The ids of requests that must be delivered before this one is sent: at most 64. Default: none. If one of them is
    /// given up or cancelled, this request is held.
    public var dependencies: [String] = []
    /// The responses that count as success. Default: any 2xx status.
    public var expectation = Expectation.success
    /// Whether the request is sent at most once. Default `false`.
    ///
    /// If the server may have applied such a request, the queue holds it instead of sending it again. The queue
    /// generates no idempotency key for it. A key given in ``idempotencyKey`` is sent, but the queue still does not
    /// send the request again. The statuses 401, 407, 408, 421, 425, 429 and 511 show that the server has not applied
    /// it.
    public var isAtMostOnce = false
    /// The key by which the server recognizes a repeated request. Default: a random UUID if the method is not
    /// idempotent, otherwise none.
    public var idempotencyKey: IdempotencyKey = .automatic
    /// The name of the credential that the queue adds at each attempt: 1 to 64 letters, digits, `.`, `_` and `-` of
    /// ASCII, not beginning with `.`. Default `nil`: none.
    ///
    /// Only the name is stored. ``OfflineQueue/register(_:as:)`` registers the credential. If the request itself
    /// contains secrets, they are removed before the request is stored: secret header fields, the user name and
    /// password of the URL, and secret items of its query. Without a name, such a request is refused.
    public var credential: String?
    /// A text that your program gives to requests of the same kind: 1 to 255 bytes of printable ASCII. Default `nil`:
    /// none.
    ///
    /// Lists and edits select requests by their tag. A handler that is registered with
    /// ``OfflineQueue/onCompletion(tag:perform:)`` receives each request with the tag when it has ended, even after a
    /// restart.
    public var tag: String?
    /// The URL that receives the outcome when the request ends, in whatever way. Default `nil`: none.
    ///
    /// The request reserves room for its webhook: the length of the URL plus 2624 bytes count towards
    /// ``QueueLimits/bytes``. Therefore ``FullQueuePolicy/dropOldest`` drops neither requests with a webhook nor
    /// webhooks. A webhook has no webhook itself.
    public var onDone: Webhook?
    /// Whether the request's URL may be a signed one, such as a presigned URL of S3, Google Cloud Storage, Azure,
    /// Alibaba Cloud OSS, Tencent Cloud COS or Huawei Cloud OBS: with query items such as `X-Amz-Signature`, `sig` and
    /// `signature`. Default `false`: such a URL is refused, because anyone who reads it can use it until it expires.
    ///
    /// The URL is stored in plaintext, even in an encrypted store. It is not shown: reports and the events contain
    /// `REDACTED` in place of the signature. Exports do not contain it. When the URL has expired, the server refuses
    /// the request, and the queue gives it up. Choose a ``timeToLive`` that ends earlier. Cannot be combined with
    /// ``credential``. Other secrets in the URL are still refused.
    public var allowsSignature = false
    /// The conditions of the network and the time of day under which the request is sent. Default: none. A request that
    /// would expire before its time window opens is refused.
    ///
    /// Requests with different constraints are in different lanes, even if their labels are the same. Requests with
    /// constraints that are not met therefore do not block others. A FIFO lane orders only requests with the same
    /// constraints.
    public var constraints = RequestConstraints()
    /// The failures that the request survives once ``OfflineQueue/enqueue(_:options:)`` has returned. Default `.full`.
    public var durability = Durability.full
    /// Whether the queue keeps a record of the request when it has ended, in whatever way. Default `true`.
    ///
    /// Without a record, the end of the request is only an event: the request is not listed, a dead one cannot be
    /// retried, and its id is unknown again. Such requests therefore displace no others from the history.
    package var isRecorded = true
    /// The user who enqueues the request. Default `nil`: this process itself.
    package var submitter: Submitter?
    /// For a webhook: the id of the request whose outcome it reports.
    package var webhookOf: String?
    /// Why the stored options cannot be read; `nil` if they can. A request with such options is held.
    package var unreadable: String?
    /// What happens when the queue is full. Default `.reject`.
    public var whenFull = FullQueuePolicy.reject

    /// The default priority: 5.
    public static let defaultPriority = 5

    /// Creates options; see the properties for the defaults.
    public init(lane: String? = nil, isFIFO: Bool = false, id: String? = nil) {
        self.lane = lane
        self.isFIFO = isFIFO
        self.id = id
    }
}
