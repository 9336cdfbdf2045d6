public import Foundation
public import NetworkReachability

/// A request in the queue or its history, with its state but without its headers, its body and its response.
public struct QueuedRequest: Hashable, Sendable {
    /// The state of a request.
    public enum State: String, Hashable, Sendable, CaseIterable, Codable {
        /// The request waits for its next attempt.
        case pending
        /// The request waits until the requests that it depends on are delivered.
        case blocked
        /// An attempt is in progress.
        case inflight
        /// The request is not sent until its hold ends; see ``QueuedRequest/holdReason``.
        case held
        /// The server responded as expected.
        case delivered
        /// The queue gave the request up.
        case dead
        /// A user or program cancelled the request.
        case cancelled
        /// A newer request with the same replace key replaced it.
        case superseded

        /// Whether the state is final: `delivered`, `dead`, `cancelled` or `superseded`.
        public var isFinal: Bool {
            switch self {
            case .pending, .blocked, .inflight, .held: false
            case .delivered, .dead, .cancelled, .superseded: true
            }
        }
    }

    /// The request's id.
    public let id: String
    /// The number of the request in the order of acceptance, in which FIFO lanes send.
    public let sequence: Int64
    /// The current state.
    public let state: State
    /// The reason for the hold; `nil` if the request is not held.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    /// In place of secrets in the query, such as the signature of a signed URL, it contains `REDACTED`.
    public let url: String
    /// The lane's label; `nil` for the origin's common lane.
    public let lane: String?
    /// Whether the lane is FIFO.
    public let isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last.
    public let priority: Int
    /// The request's tag; see ``EnqueueOptions/tag``.
    public let tag: String?
    /// The name of the credential that each attempt adds; see ``EnqueueOptions/credential``.
    public let credential: String?
    /// The id of the user who enqueued the request; `nil` if it was enqueued within the process, or if that is not
    /// known.
    package let submitter: UInt32?
    /// The length of the body in bytes. It stays known after the store has removed the body.
    public let bodyBytes: Int64
    /// The number of attempts, except those that are counted in ``deferrals``.
    public let attempts: Int
    /// The number of attempts that do not count towards ``EnqueueOptions/maximumAttempts``.
    ///
    /// These are attempts that the queue ended itself, attempts that ended with the hold ``HoldReason/auth``, and attempts
    /// that failed because the network was down, because a captive portal seemed to respond, or because this machine was
    /// short of descriptors, memory, threads or ports.
    public let deferrals: Int
    /// The time at which the request was enqueued, by the wall clock. If the clock is set later during the same boot, the
    /// time is adjusted.
    public let created: Date
    /// The time at which a pending request is tried next: when it is due, or when its lane opens if that is later.
    ///
    /// Constraints, rate limits and missing slots may delay the attempt; see ``waitReason``.
    public var due: Date? { requestDue.map { max($0, laneClosure?.until ?? $0) } }
    /// The time of the next try of a request that is held for ``HoldReason/trust`` or ``HoldReason/auth``, by the wall clock;
    /// `nil` for other requests, and if the queue is not running.
    ///
    /// Of the requests that are held for ``HoldReason/auth`` with the same credential and origin, one is tried at that time.
    /// Its success releases the others.
    public internal(set) var nextTry: Date?
    /// The time at which the queue gives the request up if it is not delivered, by the wall clock.
    public let expires: Date?
    /// The time at which the request reached a final state.
    public let finished: Date?
    /// The status of the last response, if there was one.
    public let status: Int?
    /// The error of the last attempt, the reason why the queue gave the request up, or the dependency that failed.
    public let lastError: String?
    /// The closure of the request's lane; `nil` if none is known. ``LaneClosure/cause`` is the reason.
    public internal(set) var laneClosure: LaneClosure?
    /// The reason why a pending or blocked request waits; `nil` if it is about to be tried.
    ///
    /// Only a running queue reports ``QueuedReason/notReachable(_:)``, ``QueuedReason/captivePortal(page:)``,
    /// ``QueuedReason/noFreeSlot``, ``QueuedReason/paced``, ``QueuedReason/rateLimited``, ``QueuedReason/retryBudget``,
    /// ``QueuedReason/constraint(_:)``, ``QueuedReason/localShortage``, and ``QueuedReason/laneClosed`` for a lane that
    /// is closed after failures.
    public internal(set) var waitReason: QueuedReason?
    /// The maximum number of requests in flight to the request's origin, if signs of overload have lowered it and
    /// ``waitReason`` is ``QueuedReason/noFreeSlot``; otherwise `nil`.
    public internal(set) var originLimit: Int?

    /// The id of the request for which this one waits, if ``waitReason`` is ``QueuedReason/behindEarlier`` or
    /// ``QueuedReason/blocked``; otherwise `nil`.
    ///
    /// This is the first request of the FIFO lane, or the first of the dependencies that are not delivered yet.
    public var waitsForID: String? {
        waitReason == .behindEarlier || waitReason == .blocked ? precedingID : nil
    }

    /// The time at which a pending request is due, regardless of its lane.
    package let requestDue: Date?
    let laneID: Int64?
    /// The id of the first request of the FIFO lane, if it is another one. For a blocked request, the id of its first
    /// dependency that is not delivered yet.
    let precedingID: String?
}

// MARK: - In words

extension QueuedRequest {
    /// Why the request is not delivered, in words: what it waits for, why it is held, or the error of its last attempt.
    /// `nil` if nothing is known to prevent its delivery.
    public var reason: String? {
        if let holdReason {
            // If a user holds a request, the error is that of the last attempt, which is not the cause.
            let held = "\(QueuedReason.held(holdReason))"
            return holdReason == .user
                ? held : withCause(held) + (lacksCredential ? "; \(Self.noCredential)" : "")
        }
        switch state {
        case .inflight: return lastError.map { "an earlier attempt failed: \($0)" }
        case .cancelled: return lastError.map { "last error: \($0)" }
        case .superseded:
            return "replaced by a newer request" + (lastError.map { "; last error: \($0)" } ?? "")
        default: break
        }
        switch waitReason {
        case .attemptFailed?, nil: return lastError
        case .noFreeSlot?: return "\(QueuedReason.noFreeSlot)\(originLimit.map(Self.overload) ?? "")"
        case .localShortage?: return withCause("\(QueuedReason.localShortage)")
        case .laneClosed?:
            guard let laneClosure else { return "\(QueuedReason.laneClosed)" }
            // The text about `Retry-After` already contains the status of that response.
            return laneClosure.cause == .retryAfter ? "\(laneClosure)" : withCause("\(laneClosure)")
        case let waitReason?: return waitReason.words(at: Date())
        }
    }

    /// Whether a server rejected the request because it has no credential.
    private var lacksCredential: Bool { holdReason == .auth && credential == nil && status == 401 }

    /// The end of ``reason`` if a server rejected the request with 401 and the request has no credential.
    package static let noCredential = "the request has no credential"

    /// Adds the last error to a reason, because the error is the cause.
    private func withCause(_ reason: String) -> String { reason + (lastError.map { ": \($0)" } ?? "") }

    private static func overload(_ limit: Int) -> String {
        "; after overload, the limit of requests in flight to the origin is \(limit)"
    }

    /// The time at which the time window opens for which the request waits; `nil` if it does not wait for one.
    package var windowOpening: Date? { waitReason?.windowOpening(after: Date()) }
}

extension QueuedReason {
    /// The reason in words, with the time at which a window opens.
    package func words(at now: Date) -> String {
        "\(self)" + (windowOpening(after: now).map { ", which opens at \($0.rfc3339)" } ?? "")
    }

    fileprivate func windowOpening(after now: Date) -> Date? {
        guard case .constraint(.window(let window)) = self else { return nil }
        return window.nextOpening(from: now)
    }
}

/// The reason why a request waits in the queue.
public enum QueuedReason: Hashable, Sendable {
    /// There is no path to the host, for example because an interface has no carrier.
    case notReachable(PathStatus.Reason)
    /// A captive portal intercepts plain HTTP on the path to the host. `page` is the URL at which a user can log in, if
    /// it is known. Only reported with ``OfflineQueue/Configuration/captivePortalProbe``.
    case captivePortal(page: String?)
    /// An attempt failed with the given error. The queue tries the request again.
    case attemptFailed(String)
    /// The request's lane is closed, after failures or by a server's `Retry-After`; see ``LaneClosure``.
    case laneClosed
    /// The request is due, but its origin or the queue has reached the maximum number of requests in flight. After an
    /// outage, and after signs of overload, this number is lower. Or the queue has reached the maximum number of hosts that
    /// it watches.
    case noFreeSlot
    /// The request is due, but the queue delays it so that clients do not return all at once after an outage
    /// (``OfflineQueue/Configuration/reconnectSpread``).
    case paced
    /// The request is due, but a rate limit permits no request now (``OfflineQueue/Configuration/rates``).
    case rateLimited
    /// The last attempt failed, and the origin's budget of retries permits no further one now; see
    /// <doc:BeingAGoodCitizen#The-retry-budget>.
    case retryBudget
    /// The request waits because a constraint is not met (``EnqueueOptions/constraints``).
    case constraint(UnmetConstraint)
    /// This machine was recently short of descriptors, memory, threads or ports. The queue tries the request again
    /// within 30 seconds.
    case localShortage
    /// The request's lane is FIFO and has earlier requests.
    case behindEarlier
    /// The request depends on requests that are not delivered yet.
    case blocked
    /// The request is scheduled for later (``EnqueueOptions/notBefore``).
    case scheduled
    /// The queue or the request's lane is paused.
    case paused
    /// The request is held; ``HoldReason`` describes what ends the hold.
    case held(HoldReason)
    /// The queue already contains a request with this id, so this call did not send one.
    case alreadyQueued
    /// The queue was not started, or is stopping.
    case stopped
    /// The caller's task was cancelled during ``OfflineQueue/send(_:options:)``. The request stays in the queue.
    case cancelled
}

extension QueuedReason: CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .notReachable(let reason): "not reachable: \(reason)"
        case .captivePortal(let page):
            "a captive portal intercepts plain HTTP" + (page.map { ": \($0)" } ?? "")
        case .attemptFailed(let words): words
        case .laneClosed: "waiting after failures"
        case .noFreeSlot: "no free slot"
        case .paced: "delayed so that clients do not return all at once"
        case .rateLimited: "waiting because of a rate limit"
        case .retryBudget: "waiting because retries to its origin are limited"
        case .constraint(let constraint): "waiting for \(constraint)"
        case .localShortage: "this machine is short of descriptors, memory, threads or ports"
        case .behindEarlier: "waiting for earlier requests of the lane"
        case .blocked: "waiting for the requests it depends on"
        case .scheduled: "scheduled for later"
        case .paused: "paused"
        case .held(let reason): "held (\(reason.rawValue))"
        case .alreadyQueued: "already queued with this id"
        case .stopped: "the queue has stopped"
        case .cancelled: "the wait was cancelled"
        }
    }
}

/// The reason why a request is held: the queue does not send the request until the hold ends.
///
/// ``OfflineQueue/release(_:)`` and ``OfflineQueue/retry(_:newKey:)`` end every hold, except the hold of a request that
/// cannot be decrypted.
public enum HoldReason: String, Hashable, Sendable, CaseIterable, Codable {
    /// The server's certificate was not trusted.
    ///
    /// The queue tries the request again after 5 to 15 minutes (``QueuedRequest/nextTry``), or when the path changes: a
    /// captive portal or a wrong clock may have caused the error.
    case trust
    /// A setting of this machine is wrong, for example a certificate file or a cipher list. Or a constraint of the
    /// request cannot be evaluated here: its time zone was removed, or a newer version stored it.
    /// ``QueuedRequest/lastError`` is the reason. The hold ends with ``OfflineQueue/flush(host:lane:)`` or a restart,
    /// if the cause is gone by then.
    case configuration
    /// The server requires credentials, or the request's credential cannot be used; ``QueuedRequest/lastError`` is the
    /// reason. The hold ends when the credential changes (``OfflineQueue/register(_:as:)``), when the request gets
    /// another one (``OfflineQueue/setCredential(_:of:)``), with ``OfflineQueue/flush(host:lane:)``, or with a restart.
    ///
    /// The queue also tries one of the requests with the same credential and origin again, at
    /// ``QueuedRequest/nextTry``: after 5 minutes, and then at intervals that double up to an hour. A delivery of any
    /// request with this credential to this origin releases the others; see
    /// <doc:UsingCredentials#When-a-server-rejects-a-credential>.
    case auth
    /// The server may have applied the request, and might apply it a second time if it were sent again. A user must
    /// decide: ``OfflineQueue/retry(_:newKey:)`` and ``OfflineQueue/release(_:)`` send it again,
    /// ``OfflineQueue/cancel(_:)`` gives it up.
    case ambiguous
    /// A user or program called ``OfflineQueue/hold(_:)``. Or the request was imported, and a user must check it first:
    /// ``QueuedRequest/lastError`` is the reason, for example that exports contain no signatures of URLs.
    case user
    /// A dependency of the request (``EnqueueOptions/dependencies``) was given up or cancelled.
    case dependency
    /// The request cannot be read: its encryption key is missing, or its row was changed;
    /// ``QueuedRequest/lastError`` says which. If the key is missing, add it to the file
    /// ``OfflineQueue/OfflineQueue/Configuration/encryptionKeyFile``: the hold ends when the queue is opened with it.
    /// If the row was changed, cancel the request. After the hold, ``QueuedRequest/lastError`` is again that of the
    /// last attempt.
    case key

    /// The reasons that end at a restart and at a flush, because the cause may be gone by then.
    package static let releasableByRestart: Set<HoldReason> = [.trust, .configuration, .auth, .key]
}
