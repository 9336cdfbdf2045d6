internal import Glibc

/// The table that judges all outcomes. The libcurl code or the HTTP status determines a class, and the class determines
/// the effect.
package enum FailureTable {
    package enum Class: Hashable, Sendable {
        /// There is no path, and nothing was sent.
        case path
        /// The server may have applied the request.
        case ambiguous
        /// The server reported that it did not process the request.
        case unprocessed
        /// The status is known and decides.
        case answered
        /// This machine is short of a resource for the moment.
        case local
        case trust
        case configuration
        case authentication
        /// The request itself cannot be sent.
        case permanent
        /// The queue ended the attempt.
        case aborted
    }

    /// The classes of libcurl's codes. A code that is not listed is judged by the phase that the transfer reached.
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

    /// Returns whether the same request may succeed later. An unlisted status counts as the x00 status of its class,
    /// and one above 599 as 500 (RFC 9110 §15).
    static func isPassing(_ status: Int) -> Bool {
        switch status {
        case 501, 505: false
        case 500...: true
        default: unappliedStatuses.contains(status)
        }
    }

    /// CURLE_WEIRD_SERVER_REPLY: the responder is not an HTTP server.
    private static let strangeAnswer: CInt = 8

    /// The connection led to a server that is not responsible for the URL (RFC 9110 §15.5.20).
    package static let misdirectedStatus = 421

    package static let conflictStatus = 409

    /// The time for which a 409 is retried. By then a server has finished the previous attempt, and a 409 after that is
    /// an ordinary conflict, which no attempt resolves.
    package static let longestConflict: Duration = .seconds(600)

    /// Statuses by which a server reports that it did not apply the request.
    private static let unappliedStatuses: Set<Int> = [408, 421, 425, 429]

    /// Statuses by which a server asks for a lower request rate.
    private static let throttlingStatuses: Set<Int> = [429, 503]

    /// The kernel's errors for a missing path: no route, an unreachable route, a link that is down, a blackhole route
    /// and a prohibit route. None of them decides alone, because a router, an unresponsive neighbour or a firewall
    /// causes the same errors. The queue therefore looks up whether there is a path.
    private static let pathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EINVAL, EACCES]

    /// The path errors that decide where the kernel's tables cannot be read.
    private static let plainPathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN]

    /// Returns whether a connection failed because there is no path, judging by the error number alone.
    package static func seemsOffline(_ failure: AttemptFailure) -> Bool {
        classify(failure) == .path && plainPathErrors.contains(failure.errno)
    }

    /// Returns whether a connection failed with one of the kernel's errors for a missing path.
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

// MARK: - Failed transfers

extension FailureTable {
    package static func classify(_ failure: AttemptFailure) -> Class {
        if failure.isLocalShortage { return .local }
        if failure.isUnprocessed { return .unprocessed }
        let isBeforeRequest = failure.phase < .request
        switch curlClasses[failure.code] {
        // The status arrived before the queue ended the attempt.
        case .aborted? where failure.status != nil: return .answered
        case .path? where isBeforeRequest: return .path
        // The connection that carried the request has ended, and libcurl could not open another one.
        case .path?: return failure.status == nil ? .ambiguous : .answered
        case .answered?: return failure.status == nil ? .ambiguous : .answered
        // A complete status line decides, whatever happened to the body.
        case .ambiguous? where failure.status != nil: return .answered
        case .ambiguous?: return isBeforeRequest ? .path : .ambiguous
        // The request was sent, so it is not permanently unsendable.
        case .permanent? where !isBeforeRequest:
            return failure.status == nil ? .ambiguous : .answered
        case .some(let listed): return listed
        // 28 (timeout), 35 (TLS handshake) and codes of newer libcurl versions.
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
        // A responder that is not an HTTP server affects all requests to the origin.
        let doubt: LaneEffect = failure.code == strangeAnswer ? .close : .failure
        let isAmbiguous =
            failure.phase >= .request && !request.mayBeSentTwice && !failure.isLocalShortage
        let isOffline = request.gateIsDown || request.pathHasChanged
        switch classify(failure) {
        case .path where isOffline || request.isReconnecting:
            return conclude(.retry(countsAsAttempt: false), .reconnect)
        // There is a path with a source address, so all local ports for connections to the server are in use.
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
            // The headers were not kept, so an unmet content type is no reason to repeat the request.
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

// MARK: - Responses

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
            let detail = "HTTP \(status), probably from a captive portal"
            // The server itself may redirect or respond with a page after it has applied the request.
            let isUntouched = request.mayBeSentTwice || status == 511
            return conclude(isUntouched ? .retry(countsAsAttempt: false) : .held(.ambiguous), .close, detail)
        }
        if request.expectation.isMet(status: status, contentType: response.value(of: "content-type")) {
            return conclude(.delivered(status: status), .healthy, nil)
        }
        switch status {
        case 200..<300:
            let detail = "HTTP \(status), expected \(request.expectation)"
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
        // The server still works on the previous attempt (draft-ietf-httpapi-idempotency-key-header §2.6).
        case conflictStatus where request.hasKey && (request.conflictAge ?? .zero) < longestConflict:
            return conclude(
                .retry(countsAsAttempt: true),
                .none,
                "HTTP 409: the server is still processing an earlier attempt"
            )
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

    /// Returns `retry`, or `held` if the server may have applied a request that is not safe to repeat.
    private static func repetition(after status: Int, of request: AttemptContext) -> Verdict {
        request.mayBeSentTwice || unappliedStatuses.contains(status)
            ? .retry(countsAsAttempt: true) : .held(.ambiguous)
    }
}
