internal import ClientCore
internal import Foundation
internal import Glibc

/// The table that decides what each outcome of an attempt means for its request and its lane. A failure is assigned to
/// a ``Class`` by its libcurl code, and a response is classified by its status.
package enum FailureTable {
    /// The kinds of failures.
    package enum Class: Hashable, Sendable {
        /// Nothing was sent, because the server could not be reached.
        case path
        /// The attempt ended without a response, so the server may have applied the request.
        case ambiguous
        /// The server reported that it did not process the request.
        case unprocessed
        /// The status of the response arrived before the failure, and is classified like the status of a complete response.
        case responded
        /// A local problem that may pass, such as a shortage of memory or a file that cannot be read.
        case local
        /// The server's certificate is not trusted.
        case trust
        /// The client or its settings are wrong, so no request of the lane can be sent.
        case configuration
        /// The client could not authenticate itself.
        case authentication
        /// This request can never be sent, for example because its URL is malformed.
        case permanent
        /// The queue itself ended the attempt, because the path changed or the queue stops.
        case aborted
    }

    /// The class of each `CURLcode`. Codes that are not listed are classified by the phase that the transfer reached.
    package static let curlClasses: [CInt: Class] = {
        let rows: [(Class, [CInt])] = [
            (.path, [5, 6, 7, 45, 89, 96, 97]),
            (.ambiguous, [8, 16, 52, 55, 56, 65, 80, 92, 95]),
            (.responded, [18, 23, 61, 63, 100]),
            (.local, [2, 26, 27, 99]),
            (.trust, [60, 83, 90, 91]),
            (.configuration, [1, 4, 48, 53, 54, 58, 59, 64, 66, 77, 82, 98, 101]),
            (.authentication, [67, 94]),
            (.permanent, [3, 43, 49]),
            (.aborted, [42]),
        ]
        return Dictionary(uniqueKeysWithValues: rows.flatMap { row in row.1.map { ($0, row.0) } })
    }()

    /// Returns whether the same request may succeed later, judging by the status of a response that reports an error.
    /// An unknown status counts as the x00 status of its class, and a status above 599 counts as 500 (RFC 9110 §15).
    static func isPassing(_ status: Int) -> Bool {
        switch status {
        case 501, 505: false
        case 500...: true
        default: unappliedStatuses.contains(status)
        }
    }

    /// `CURLE_WEIRD_SERVER_REPLY`: the peer does not speak HTTP.
    private static let weirdServerReply: CInt = 8

    /// The status of a server that is not responsible for the URL (Misdirected Request, RFC 9110 §15.5.20).
    package static let misdirectedStatus = 421

    /// The status of a conflict. For a request with an idempotency key it may mean that the server still processes an
    /// earlier attempt.
    package static let conflictStatus = 409

    /// The time for which a request with an idempotency key is retried after its first 409: 10 minutes. By then the
    /// server should have finished the earlier attempt. A later 409 is an ordinary conflict, which no retry resolves.
    package static let longestConflict: Duration = .seconds(600)

    /// The statuses that mean that the server did not apply the request.
    private static let unappliedStatuses: Set<Int> = [408, 421, 425, 429]

    /// Returns whether a server reports by this status that it did not apply the request.
    static func isUnapplied(_ status: Int) -> Bool { unappliedStatuses.contains(status) }

    /// The statuses of a server and of a proxy that require credentials. They did not apply the request.
    private static let authenticationStatuses: Set<Int> = [401, 407]

    /// The statuses that ask for a lower request rate.
    private static let throttlingStatuses: Set<Int> = [429, 503]

    /// The errors that the kernel returns when there is no path, in this order: no route, an unreachable route, a link
    /// that is down, a blackhole route, a prohibit route. These errors do not prove that there is no path, because a
    /// router, an unresponsive neighbour or a firewall causes them, too. The queue therefore also looks up the path.
    private static let pathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EINVAL, EACCES]

    /// The path errors that count as proof where the kernel's routing tables cannot be read.
    private static let plainPathErrors: Set<CInt> = [ENETUNREACH, EHOSTUNREACH, ENETDOWN]

    /// The errors of a bound socket whose source address or interface no longer exists. EADDRNOTAVAIL may also mean that
    /// all local ports for connections to the server are in use.
    private static let lostBindingErrors: Set<CInt> = [EADDRNOTAVAIL, ENODEV]

    /// Returns whether a connection was refused, so that there is a path whatever the monitor reports. For a name whose
    /// addresses it does not know yet, it reports the state of the network in general.
    private static func provesPath(_ failure: AttemptFailure) -> Bool { failure.errno == ECONNREFUSED }

    /// Returns whether connecting failed because there is no path, judging by the error number alone. Used only where
    /// the kernel's routing tables cannot be read.
    package static func seemsOffline(_ failure: AttemptFailure) -> Bool {
        classify(failure) == .path && plainPathErrors.contains(failure.errno)
    }

    /// Returns whether connecting failed with an error that the kernel returns when there is no path. It may have
    /// another cause.
    package static func isPathError(_ failure: AttemptFailure) -> Bool {
        classify(failure) == .path && pathErrors.contains(failure.errno)
    }

    /// Returns what an outcome means for the request and its lane.
    ///
    /// - Parameters:
    ///   - now: The current time, by the wall clock. `Retry-After` may contain a date.
    ///   - redactor: Removes the request's secrets from messages that quote a response. Default: none are removed.
    package static func classify(
        _ outcome: AttemptOutcome,
        of request: AttemptContext,
        now: Timestamp,
        redactor: Redactor = .none
    ) -> AttemptClassification {
        switch outcome {
        case .response(let status, let headers, let body, _):
            var response = Response(status: status, headers: headers, body: body)
            response.redactor = redactor
            return classify(response, of: request, now: now)
        case .failure(let failure):
            return classify(failure, of: request, now: now)
        case .withheld(let reason):
            return AttemptClassification(
                verdict: reason.remedy == .change ? .held(.auth) : .retry(countsAsAttempt: false),
                lane: .none,
                status: nil,
                detail: reason.reason,
                postponement: reason.delay
            )
        case .unsendable(let reason):
            return AttemptClassification(
                verdict: .dead(.bodyLost, reason: reason),
                lane: .none,
                status: nil,
                detail: reason
            )
        }
    }
}

// MARK: - Failed transfers

extension FailureTable {
    /// Returns the class of a failed transfer.
    package static func classify(_ failure: AttemptFailure) -> Class {
        if failure.isLocalShortage { return .local }
        if failure.isUnprocessed { return .unprocessed }
        let isBeforeRequest = failure.phase < .request
        switch curlClasses[failure.code] {
        // The status arrived before the queue ended the attempt, so it decides.
        case .aborted? where failure.status != nil: return .responded
        case .path? where isBeforeRequest: return .path
        // A path error after sending began: the connection has ended, and libcurl could not open another one.
        case .path?: return failure.status == nil ? .ambiguous : .responded
        case .responded?: return failure.status == nil ? .ambiguous : .responded
        // Once the status has arrived, it decides, even if the connection ended during the body.
        case .ambiguous? where failure.status != nil: return .responded
        case .ambiguous?: return isBeforeRequest ? .path : .ambiguous
        // Part of the request was sent, so it is not unsendable.
        case .permanent? where !isBeforeRequest:
            return failure.status == nil ? .ambiguous : .responded
        case .some(let listed): return listed
        // Codes that are not in the table: 28 (timeout), 35 (TLS handshake) and codes of newer libcurl versions.
        case nil where isBeforeRequest: return .path
        case nil: return failure.status == nil ? .ambiguous : .responded
        }
    }

    private static func classify(
        _ failure: AttemptFailure,
        of request: AttemptContext,
        now: Timestamp
    ) -> AttemptClassification {
        func conclude(_ verdict: Verdict, _ lane: LaneEffect) -> AttemptClassification {
            AttemptClassification(
                verdict: verdict,
                lane: lane,
                status: failure.status,
                detail: failure.message
            )
        }
        // A peer that does not speak HTTP fails every request to the origin, so the lane closes.
        let ambiguousEffect: LaneEffect = failure.code == weirdServerReply ? .foreign : .failure
        let isAmbiguous =
            failure.phase >= .request && !request.mayBeSentTwice && !failure.isLocalShortage
        let isOffline = request.gateIsDown || request.pathHasChanged
        switch classify(failure) {
        case .path where request.pathHasChanged,
            .path where (request.isReconnecting || request.gateIsDown) && !provesPath(failure):
            return conclude(.retry(countsAsAttempt: false), .reconnect)
        // The source address or the interface was removed after the attempt was bound to it. The path monitor may not have
        // reported it yet, or the host may already have another path, to which the next attempt is bound.
        case .path where request.isBound && lostBindingErrors.contains(failure.errno):
            return conclude(.retry(countsAsAttempt: false), .reconnect)
        // The kernel chooses the source address of an unbound socket. If it finds none, there is no path, and `isOffline`
        // is true. The error therefore means that all local ports for connections to the server are in use.
        case .path where failure.errno == EADDRNOTAVAIL:
            return conclude(.retry(countsAsAttempt: false), .shortage)
        case .path: return conclude(.retry(countsAsAttempt: true), .close)
        case .ambiguous where request.mayBeSentTwice:
            var classification = conclude(
                .retry(countsAsAttempt: !isOffline),
                isOffline ? .reconnect : ambiguousEffect
            )
            classification.overrun = failure.overrun
            return classification
        case .ambiguous: return conclude(.held(.ambiguous), isOffline ? .reconnect : ambiguousEffect)
        case .unprocessed: return conclude(.retry(countsAsAttempt: true), .failure)
        case .responded:
            // A failure has no header fields, so the expected content type cannot be checked, and must not cause a
            // retry. Rules count as not met, because nothing proves that the real server responded.
            var request = request
            request.expectation.contentType = nil
            return classify(Response(status: failure.status ?? 0), of: request, now: now)
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
    typealias Response = ReceivedResponse

    private static func classify(
        _ response: Response,
        of request: AttemptContext,
        now: Timestamp
    ) -> AttemptClassification {
        let status = response.status
        if isPortal(response, of: request) {
            let words = words(onRedirect: response, of: request)
            let reason = request.expectation.ruleMismatch(with: response).map { ", \($0)" } ?? ""
            let other = (300..<400).contains(status) ? ", or the URL is wrong" : ""
            let detail = "\(words)\(reason); the response is probably from a captive portal\(other)"
            // If the response comes from the server after all, the server may have applied the request.
            let isUntouched = request.mayBeSentTwice || status == 511 || isUnapplied(status)
            let verdict: Verdict = isUntouched ? .retry(countsAsAttempt: false) : .held(.ambiguous)
            var classification = response.means(verdict, .foreign, detail)
            classification.suspectsPortal = true
            return classification
        }
        if request.expectation.isMet(by: response) {
            return response.means(.delivered(status: status), .healthy, nil)
        }
        let usual = usualMeaning(of: response, for: request, now: now)
        let detail = usual.detail ?? "HTTP \(status)"
        return switch request.statusRules.lazy.compactMap({ $0.fate(of: status) }).first {
        case nil: usual
        case .retry: usual.retried(by: repetition(after: status, of: request), detail)
        case .dead: usual.ended(reason: detail)
        }
    }

    /// Returns the meaning of a response that is neither a delivery nor a portal's, without the caller's rules for
    /// statuses.
    private static func usualMeaning(
        of response: Response,
        for request: AttemptContext,
        now: Timestamp
    ) -> AttemptClassification {
        let status = response.status
        switch status {
        case 200..<300:
            let reason = request.expectation.mismatch(with: response)
            let detail = ["HTTP \(status)", reason].compactMap(\.self).joined(separator: ", ")
            return response.means(repetition(after: status, of: request), .failure, detail)
        case _ where authenticationStatuses.contains(status):
            return response.means(.held(.auth), .healthy, "HTTP \(status)")
        case misdirectedStatus where request.lastStatus != misdirectedStatus:
            return response.means(.retry(countsAsAttempt: true), .again, "HTTP \(status)")
        case _ where throttlingStatuses.contains(status):
            let wait = response.value(of: "retry-after").flatMap { RetryAfter.parse($0, now: now) }
            let lane = wait.map(LaneEffect.closeFor) ?? .close
            return response.means(repetition(after: status, of: request), lane, "HTTP \(status)")
        case _ where isPassing(status):
            return response.means(repetition(after: status, of: request), .failure, "HTTP \(status)")
        // The server is still processing an earlier attempt (draft-ietf-httpapi-idempotency-key-header §2.6).
        case conflictStatus where request.hasKey && (request.conflictAge ?? .zero) < longestConflict:
            return response.means(
                .retry(countsAsAttempt: true),
                .none,
                "HTTP 409: the server is still processing an earlier attempt"
            )
        case conflictStatus where request.hasKey:
            let reason = "HTTP 409 for \(longestConflict.words)"
            return response.means(.dead(.conflict, reason: reason), .healthy, reason)
        case 300..<400:
            let reason = words(onRedirect: response, of: request)
            return response.means(.dead(.redirected, reason: reason), .healthy, reason)
        default:
            return response.means(.dead(.refused, reason: "HTTP \(status)"), .healthy, "HTTP \(status)")
        }
    }

    /// Returns `retry` if the request may be sent again: it may be sent twice, or the status means that the server did
    /// not apply it. Returns `held` for any other request.
    private static func repetition(after status: Int, of request: AttemptContext) -> Verdict {
        request.mayBeSentTwice || isUnapplied(status) || authenticationStatuses.contains(status)
            ? .retry(countsAsAttempt: true) : .held(.ambiguous)
    }
}

extension ReceivedResponse {
    /// Returns a classification with the status of this response.
    fileprivate func means(
        _ verdict: Verdict,
        _ lane: LaneEffect,
        _ detail: String?
    ) -> AttemptClassification {
        AttemptClassification(verdict: verdict, lane: lane, status: status, detail: detail)
    }
}

// Detects responses of captive portals and other devices between this machine and the server, and describes redirects.

extension FailureTable {
    /// Returns whether the response may come from a captive portal instead of the server. It then counts neither as a
    /// success nor as a refusal.
    ///
    /// Without TLS, any device on the path may redirect the request or respond with an unrequested page. With TLS, the
    /// server has proven its identity, so a redirect comes from the server. ``Expectation/rules`` recognize the server
    /// without TLS: they decide alone, except about a 511, which no server sends for itself. Nothing intercepts
    /// requests to this machine. The host of the URL tells that, not the path: a request through a proxy on this
    /// machine may still meet a portal.
    static func isPortal(_ response: Response, of request: AttemptContext) -> Bool {
        if request.origin.isLoopback { return false }
        let isPlain = request.origin.scheme == "http"
        if !request.expectation.rules.isEmpty, isPlain || !request.validatesServer {
            guard request.expectation.unmetRule(in: response) == nil else { return true }
            return response.status == 511 && !request.expectation.isMet(by: response)
        }
        let type = response.value(of: "content-type")
        switch response.status {
        // A caller that expects this status accepts it, even though a portal may have sent it.
        case 300... where request.expectation.isMet(by: response): return false
        case 511: return true
        case 301, 302, 303, 307, 308:
            guard let location = response.value(of: "location") else { return isPlain }
            return isPlain || !request.validatesServer && leads(location, awayFrom: request.origin)
        default:
            guard isPlain, let type, type.lowercased().hasPrefix("text/html") else { return false }
            return !acceptsHTML(request.accept) || !request.expectation.isType(type)
        }
    }

    private static func leads(_ location: String, awayFrom origin: Origin) -> Bool {
        guard let location = absolute(location, from: origin) else { return false }
        return (try? Origin(url: location)) != origin
    }

    /// Returns the absolute form of a `Location`; `nil` if it is a path relative to the request's URL, and therefore
    /// leads to the same origin.
    private static func absolute(_ location: String, from origin: Origin) -> String? {
        if location.hasPrefix("//") { return "\(origin.scheme):\(location)" }
        return location.contains("://") ? location : nil
    }

    private static func acceptsHTML(_ accept: String?) -> Bool {
        guard let accept = accept?.lowercased() else { return true }
        return ["text/html", "text/*", "*/*", "xhtml"].contains { accept.contains($0) }
    }
}

extension FailureTable {
    /// Returns the text for a response: its status and, if it is a redirect with a `Location`, its target.
    static func words(onRedirect response: Response, of request: AttemptContext) -> String {
        let location = 300..<400 ~= response.status ? response.value(of: "location") : nil
        // The secrets are removed first, because the text is truncated.
        let shown = location.map(response.redactor.text)
        let target = shown.flatMap { absolute($0, from: request.origin) ?? $0 }.flatMap(withoutSecrets)
        return "HTTP \(response.status)" + (target.map { ", a redirect to \($0)" } ?? "")
    }

    /// Returns the scheme, host, port and path of a URL, truncated to 200 bytes. The other parts are omitted, because
    /// they may contain a token or a password.
    private static func withoutSecrets(_ url: String) -> String? {
        // A percent-encoded string has no control characters, and each character takes one byte.
        let target = URLComponents(string: RedactedURL.withoutQuery(url))?.string
        return target.flatMap { $0.isEmpty ? nil : String($0.prefix(200)) }
    }
}
