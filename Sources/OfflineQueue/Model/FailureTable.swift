internal import Glibc

/// What the table has to know of a request besides its outcome.
package struct AttemptContext: Hashable, Sendable {
    package let origin: Origin
    package let mayBeSentTwice: Bool
    package let hasKey: Bool
    /// Whether there was no path to the host when the attempt began, or there is none now.
    package var gateIsDown: Bool
    /// Whether the path was lost and found, or became another one, while the attempt was made.
    package var pathHasChanged = false
    /// Whether a failure to connect is repeated fast: the path was found a moment ago.
    package var isReconnecting = false
    /// The request's `Accept`, `nil` without one.
    package let accept: String?
    package var expectation: Expectation
    /// The status of the attempt before.
    package let lastStatus: Int?
    /// Whether a server of an `https` origin has to prove that it is the one. A session may have been told otherwise.
    package var validatesServer = true
    /// How long ago the first 409 in a row came; `nil` when the last answer was none.
    package var conflictAge: Duration?

    package init(
        origin: Origin,
        mayBeSentTwice: Bool,
        hasKey: Bool,
        gateIsDown: Bool,
        accept: String?,
        expectation: Expectation = .success,
        lastStatus: Int? = nil
    ) {
        self.origin = origin
        self.mayBeSentTwice = mayBeSentTwice
        self.hasKey = hasKey
        self.gateIsDown = gateIsDown
        self.accept = accept
        self.expectation = expectation
        self.lastStatus = lastStatus
    }
}

/// What an attempt means for its lane.
package enum LaneEffect: Hashable, Sendable {
    /// The server answered as it should, be it with a refusal.
    case healthy
    /// Nothing is learnt about the lane.
    case none
    /// We ended the attempt because the path changed; the next may begin at once.
    case renewed
    /// The next attempt may begin at once.
    case again
    /// One request failed; several in a row close the lane.
    case failure
    /// The lane closes and backs off.
    case close
    /// There was no path, or there is one only since a moment: tried again after 50, 100, 200, … ms, when there is a path.
    case reconnect
    /// This machine is short of something: tried again at a pace that no other failure has a part in.
    case shortage
    /// The server names the time to wait (`Retry-After`).
    case closeFor(Duration)
    /// The lane waits at least 5 minutes.
    case distrust
    /// The lane waits until somebody acts.
    case hold
}

/// The judgement of one attempt.
package struct Judgement: Hashable, Sendable {
    package let verdict: Verdict
    package let lane: LaneEffect
    package let status: Int?
    /// What went wrong, for people; `nil` when nothing did.
    package let detail: String?
    /// The timeout that ended the attempt while the server may still execute it. The next attempt waits for as long.
    package var overrun: Duration?
}

/// One table for all outcomes: curl's code or the HTTP status gives a class, the class gives the effect.
package enum FailureTable {
    package enum Class: Hashable, Sendable {
        /// The path is down and nothing was sent.
        case path
        /// It may have been applied.
        case ambiguous
        /// The server said that it did not process what was sent.
        case unprocessed
        /// The status is known and decides.
        case answered
        /// This machine is short of something for the moment.
        case local
        case trust
        case configuration
        case authentication
        /// The request itself cannot be sent.
        case permanent
        /// We ended it.
        case aborted
    }

    /// The codes of libcurl. One that is not listed is judged by how far the transfer had come.
    package static let curlClasses: [CInt: Class] = {
        let rows: [(Class, [CInt])] = [
            (.path, [5, 6, 7, 45, 89, 96, 97]),
            (.ambiguous, [8, 16, 52, 55, 56, 65, 80, 92, 95]),
            (.answered, [18, 23, 61, 63, 100]),
            (.local, [2, 26, 27, 99]),
            (.trust, [60, 83, 90, 91]),
            (.configuration, [1, 4, 48, 53, 54, 58, 59, 64, 66, 77, 82, 98, 101]),
            (.authentication, [67, 94]),
            (.permanent, [3, 43, 49]),
            (.aborted, [42]),
        ]
        return Dictionary(uniqueKeysWithValues: rows.flatMap { row in row.1.map { ($0, row.0) } })
    }()

    /// Whether the same request may succeed later. A status that is not listed counts as the x00 of its class, and one above
    /// 599 as 500 (RFC 9110 §15).
    static func isPassing(_ status: Int) -> Bool {
        switch status {
        case 501, 505: false
        case 500...: true
        default: unappliedStatuses.contains(status)
        }
    }

    /// CURLE_WEIRD_SERVER_REPLY: something other than an HTTP server has answered.
    private static let strangeAnswer: CInt = 8

    /// The connection led to a server that does not answer for the URL (RFC 9110 §15.5.20).
    package static let misdirectedStatus = 421

    package static let conflictStatus = 409

    /// A server that still works on the attempt before is done with it by then. Who answers 409 for longer means an
    /// ordinary conflict, which no attempt resolves.
    package static let longestConflict: Duration = .seconds(600)

    /// Statuses by which a server says that it did nothing.
    private static let unappliedStatuses: Set<Int> = [408, 421, 425, 429]

    /// Statuses by which a server says that it wants less.
    private static let throttlingStatuses: Set<Int> = [429, 503]

    /// The kernel's errors for a missing path: no route, a route that says unreachable, a link that is down, a blackhole and
    /// a prohibit route. None of them decides alone: a router, a neighbour that does not answer, and a firewall cause the
    /// same numbers. Whether there is a path is looked up.
    private static let pathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EINVAL, EACCES]

    /// Those of them that decide where the kernel cannot be asked.
    private static let plainPathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN]

    /// Whether a connection failed for want of a path, as far as its error number says.
    package static func seemsOffline(_ failure: AttemptFailure) -> Bool {
        classify(failure) == .path && plainPathErrors.contains(failure.errno)
    }

    /// Whether a connection failed with an error that the kernel has for a missing path.
    package static func isPathError(_ failure: AttemptFailure) -> Bool {
        classify(failure) == .path && pathErrors.contains(failure.errno)
    }

    package static func judge(
        _ outcome: AttemptOutcome,
        of request: AttemptContext,
        now: Timestamp
    ) -> Judgement {
        switch outcome {
        case .response(let status, let headers, _, _):
            judge(Response(status: status, headers: headers), of: request, now: now)
        case .failure(let failure):
            judge(failure, of: request, now: now)
        case .unsendable(let reason):
            Judgement(verdict: .dead(.bodyLost, reason: reason), lane: .none, status: nil, detail: reason)
        }
    }
}

// MARK: - Transfers that failed

extension FailureTable {
    package static func classify(_ failure: AttemptFailure) -> Class {
        if failure.isLocalShortage { return .local }
        if failure.isUnprocessed { return .unprocessed }
        let isBeforeRequest = failure.phase < .request
        switch curlClasses[failure.code] {
        // The status came before we ended the attempt.
        case .aborted? where failure.status != nil: return .answered
        case .path? where isBeforeRequest: return .path
        // The connection that it was sent over has ended, and another could not be made.
        case .path?: return failure.status == nil ? .ambiguous : .answered
        case .answered?: return failure.status == nil ? .ambiguous : .answered
        // A whole status line decides, whatever happened to the body behind it.
        case .ambiguous? where failure.status != nil: return .answered
        case .ambiguous?: return isBeforeRequest ? .path : .ambiguous
        // Whatever answers, the request could be sent.
        case .permanent? where !isBeforeRequest:
            return failure.status == nil ? .ambiguous : .answered
        case .some(let listed): return listed
        // 28 (timeout), 35 (TLS handshake) and whatever is new.
        case nil where isBeforeRequest: return .path
        case nil: return failure.status == nil ? .ambiguous : .answered
        }
    }

    private static func judge(
        _ failure: AttemptFailure,
        of request: AttemptContext,
        now: Timestamp
    ) -> Judgement {
        func conclude(_ verdict: Verdict, _ lane: LaneEffect) -> Judgement {
            Judgement(verdict: verdict, lane: lane, status: failure.status, detail: failure.message)
        }
        // All requests to the origin would be answered so.
        let doubt: LaneEffect = failure.code == strangeAnswer ? .close : .failure
        let isAmbiguous =
            failure.phase >= .request && !request.mayBeSentTwice && !failure.isLocalShortage
        let isOffline = request.gateIsDown || request.pathHasChanged
        switch classify(failure) {
        case .path where isOffline || request.isReconnecting:
            return conclude(.retry(countsAsAttempt: false), .reconnect)
        // There is a path, and a source address with it: all ports to the server are in use.
        case .path where failure.errno == EADDRNOTAVAIL:
            return conclude(.retry(countsAsAttempt: false), .shortage)
        case .path: return conclude(.retry(countsAsAttempt: true), .close)
        case .ambiguous where request.mayBeSentTwice:
            var judgement = conclude(
                .retry(countsAsAttempt: !isOffline),
                isOffline ? .reconnect : doubt
            )
            judgement.overrun = failure.overrun
            return judgement
        case .ambiguous: return conclude(.held(.ambiguous), isOffline ? .reconnect : doubt)
        case .unprocessed: return conclude(.retry(countsAsAttempt: true), .failure)
        case .answered:
            // The header was not kept, so what it said of the type is no reason to send it again.
            var request = request
            request.expectation.contentType = nil
            return judge(Response(status: failure.status ?? 0, headers: []), of: request, now: now)
        case .local:
            let effect: LaneEffect = failure.isLocalShortage ? .shortage : .none
            return conclude(isAmbiguous ? .held(.ambiguous) : .retry(countsAsAttempt: false), effect)
        case .aborted:
            return conclude(isAmbiguous ? .held(.ambiguous) : .retry(countsAsAttempt: false), .renewed)
        case .trust: return conclude(.held(.trust), .distrust)
        case .configuration: return conclude(.held(.configuration), .hold)
        case .authentication: return conclude(.held(.auth), .none)
        case .permanent: return conclude(.dead(.unsendable, reason: failure.message), .none)
        }
    }
}

// MARK: - Answers

extension FailureTable {
    struct Response {
        let status: Int
        let headers: [(String, String)]

        func value(of name: String) -> String? {
            headers.first { $0.0.lowercased() == name }?.1
        }
    }

    private static func judge(
        _ response: Response,
        of request: AttemptContext,
        now: Timestamp
    ) -> Judgement {
        let status = response.status
        func conclude(_ verdict: Verdict, _ lane: LaneEffect, _ detail: String?) -> Judgement {
            Judgement(verdict: verdict, lane: lane, status: status, detail: detail)
        }
        if isPortal(response, of: request) {
            let detail = "HTTP \(status), which looks like a captive portal's"
            // The server itself may redirect, or answer with a page, after it has applied the request.
            let isUntouched = request.mayBeSentTwice || status == 511
            return conclude(isUntouched ? .retry(countsAsAttempt: false) : .held(.ambiguous), .close, detail)
        }
        if request.expectation.isMet(status: status, contentType: response.value(of: "content-type")) {
            return conclude(.delivered(status: status), .healthy, nil)
        }
        switch status {
        case 200..<300:
            let detail = "HTTP \(status), where \(request.expectation) was expected"
            return conclude(repetition(after: status, of: request), .failure, detail)
        case 401, 407: return conclude(.held(.auth), .healthy, "HTTP \(status)")
        case misdirectedStatus where request.lastStatus != misdirectedStatus:
            return conclude(.retry(countsAsAttempt: true), .again, "HTTP \(status)")
        case _ where throttlingStatuses.contains(status):
            let wait = response.value(of: "retry-after").flatMap { RetryAfter.parse($0, now: now) }
            let lane = wait.map(LaneEffect.closeFor) ?? .close
            return conclude(repetition(after: status, of: request), lane, "HTTP \(status)")
        case _ where isPassing(status):
            return conclude(repetition(after: status, of: request), .failure, "HTTP \(status)")
        // The server still works on the attempt before (draft-ietf-httpapi-idempotency-key-header §2.6).
        case conflictStatus where request.hasKey && (request.conflictAge ?? .zero) < longestConflict:
            return conclude(.retry(countsAsAttempt: true), .none, "HTTP 409, still being worked on")
        case conflictStatus where request.hasKey:
            let reason = "HTTP 409 for \(longestConflict.words)"
            return conclude(.dead(.conflict, reason: reason), .healthy, reason)
        case 300..<400:
            let reason = words(onRedirect: response, of: request)
            return conclude(.dead(.redirected, reason: reason), .healthy, reason)
        default:
            return conclude(.dead(.refused, reason: "HTTP \(status)"), .healthy, "HTTP \(status)")
        }
    }

    /// Tried again, unless the server may have applied what must not be applied twice.
    private static func repetition(after status: Int, of request: AttemptContext) -> Verdict {
        request.mayBeSentTwice || unappliedStatuses.contains(status)
            ? .retry(countsAsAttempt: true) : .held(.ambiguous)
    }
}
