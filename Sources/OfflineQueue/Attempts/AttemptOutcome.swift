package import ClientCore
package import Foundation

/// The result of one attempt.
package enum AttemptOutcome: Sendable {
    /// The server responded. `isTruncated` is whether `body` is incomplete, because it exceeded a limit or the
    /// connection ended.
    case response(status: Int, headers: [(String, String)], body: Data, isTruncated: Bool)
    /// The transfer failed without a usable response. If only the body of a response was cut, by a limit or by the end
    /// of the connection, the outcome is `response`.
    case failure(AttemptFailure)
    /// Nothing was sent, because the request's credential could not be added, or because the adapter of the queue's
    /// session failed or did not return.
    case withheld(WithheldReason)
    /// Nothing was sent, because the stored body is missing or differs from the accepted one.
    case unsendable(reason: String)

    /// The outcome of an attempt that was not sent. After the request was claimed, the path changed and must be probed
    /// for captive portals first, or a portal was found, or a constraint of the request was lost.
    static let unsent = AttemptOutcome.failure(.unsent)

    /// The outcome of an attempt after a 401 that may be a portal's: the path or a constraint changed, as for
    /// ``unsent``. The server has not executed the request, so the attempt counts as unsent.
    static let notRefreshed = AttemptOutcome.failure(.notRefreshed)

    /// The outcome of an attempt that received a 401: the path or a constraint changed, as for ``unsent``, while the
    /// credential was refreshed. The server has not executed the request, so the attempt counts as unsent.
    static let notSentAgain = AttemptOutcome.failure(.notSentAgain)

    /// Returns the outcome with `REDACTED` in place of the secrets in messages. A response is not changed, because rules
    /// may depend on it; see ``AttemptSecrets``.
    func redacted(by redactor: Redactor) -> AttemptOutcome {
        switch self {
        case .failure(let failure): .failure(failure.withMessage(redactor.text(failure.message)))
        case .withheld(let reason): .withheld(reason.mapText(redactor.text))
        case .response, .unsendable: self
        }
    }

    /// Whether the outcome is ``unsent``.
    var isUnsent: Bool {
        if case .failure(let failure) = self { failure == .unsent } else { false }
    }
}

extension AttemptFailure {
    fileprivate static let unsent = aborted("the path or a constraint changed before the request was sent")
    fileprivate static let notRefreshed = aborted(
        "HTTP 401; the credential is not refreshed, because the path or a constraint changed"
    )
    fileprivate static let notSentAgain = aborted(
        "HTTP 401; the request is not sent again, because the path or a constraint changed during the refresh of the "
            + "credential"
    )

    /// 42 is CURLE_ABORTED_BY_CALLBACK: the queue itself ended the attempt.
    private static func aborted(_ message: String) -> AttemptFailure {
        AttemptFailure(code: 42, phase: .resolve, message: message)
    }
}

/// The cause of a failed transfer, as libcurl and the kernel reported it.
package struct AttemptFailure: Hashable, Sendable {
    /// The last phase that a transfer reached, in the order of a transfer.
    package enum Phase: Int, Hashable, Sendable, Comparable, CaseIterable {
        case resolve
        case connect
        case tls
        /// The request was being sent. The server may have received some or all of it.
        case request
        /// The whole request was sent. The transfer waited for the response, or was reading it.
        case response

        package static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// The `CURLcode`.
    package let code: CInt
    /// The system's error number (`CURLINFO_OS_ERRNO`); 0 if there was none.
    package let errno: CInt
    package let phase: Phase
    /// The bytes of the request that were handed to the kernel.
    package let bytesSent: Int64
    /// The response's status; `nil` if the transfer failed before the head of the response arrived.
    package let status: Int?
    package private(set) var message: String
    /// Whether nothing was sent because this machine was short of a resource, so that neither the network nor the
    /// server caused the failure. The resource is descriptors, memory, a resolver thread, or a free transfer under the
    /// session's limit per host.
    package let isLocalShortage: Bool
    /// Whether the server reported that it did not process the request.
    package var isUnprocessed = false
    /// The timeout that ended the attempt after the whole request was sent and before a response arrived. The server
    /// may still execute the request. `nil` if the attempt ended in any other way.
    package var overrun: Duration?

    package init(
        code: CInt,
        errno: CInt = 0,
        phase: Phase,
        bytesSent: Int64 = 0,
        status: Int? = nil,
        message: String,
        isLocalShortage: Bool = false
    ) {
        self.code = code
        self.errno = errno
        self.phase = phase
        self.bytesSent = bytesSent
        self.status = status
        self.message = message
        self.isLocalShortage = isLocalShortage
    }

    /// The failure of an attempt that the queue cancelled before anything was sent. 42 is CURLE_ABORTED_BY_CALLBACK.
    static let cancelledUnsent = AttemptFailure(code: 42, phase: .resolve, message: "cancelled")

    /// Returns a copy of the failure with another message.
    package func withMessage(_ message: String) -> AttemptFailure {
        var failure = self
        failure.message = message
        return failure
    }
}

/// The interface through which the queue sends attempts. ``SessionSender`` implements it with the HTTP client.
package protocol AttemptSender: Sendable {
    /// Sends the attempt and returns its outcome. Cancelling the task ends the attempt soon; it then fails with
    /// `CURLcode` 42 (`CURLE_ABORTED_BY_CALLBACK`).
    func send(_ attempt: Attempt) async -> AttemptOutcome

    /// The session that sends, for credentials that adapt requests; `nil` if there is none.
    var session: SessionManager? { get }

    /// Makes all later attempts open new connections, because pooled connections may belong to an old network path.
    func dropConnections() async

    /// Restarts the stalled transfers to an endpoint. Called when a path is found again, because packets that were sent
    /// without a path are lost. The calls of ``send(_:)`` continue.
    ///
    /// A transfer is restarted while it connects. It is also restarted if the server has acknowledged no part of the
    /// request and the request may be sent twice.
    func restartStalled(to endpoint: Endpoint)

    /// Returns whether the certificate of an `https` URL's server is validated.
    func validatesServer(of url: String) -> Bool
}

extension AttemptSender {
    package var session: SessionManager? { nil }

    package func restartStalled(to endpoint: Endpoint) {}

    package func validatesServer(of url: String) -> Bool { true }
}

/// What the outcome of an attempt means for its request (``verdict``) and its lane (``lane``).
package struct AttemptClassification: Hashable, Sendable {
    package private(set) var verdict: Verdict
    package private(set) var lane: LaneEffect
    /// The HTTP status; `nil` if none arrived.
    package let status: Int?
    /// A human-readable description of the error; `nil` after a success.
    package private(set) var detail: String?
    /// The timeout that ended the attempt before the server responded; `nil` if none did. The server may still be
    /// executing the request, so the next attempt waits for the same time.
    package var overrun: Duration?
    /// The minimum time until the next attempt, because of the request's credential.
    package var postponement: Duration = .zero
    /// Whether a captive portal may have responded instead of the server.
    package var suspectsPortal = false
    /// Whether the caller's rules for statuses end the request (``StatusRules/dead``). Its refusal is then not confirmed.
    package private(set) var isChosen = false
}

extension AttemptClassification {
    /// Returns the classification of a response after which the caller's rules retry the request. A response that does not
    /// end the request in any case keeps its meaning.
    func retried(by verdict: Verdict, _ detail: String) -> AttemptClassification {
        switch self.verdict {
        case .dead, .held(.auth): replaced(verdict, .failure, detail)
        case .delivered, .retry, .held: self
        }
    }

    /// Returns the classification of a response after which the caller's rules give the request up. The effect on the lane
    /// remains, because it depends on the server.
    func ended(reason: String) -> AttemptClassification {
        var ended = self
        if case .dead = verdict {} else { ended.verdict = .dead(.refused, reason: reason) }
        if lane == .none || lane == .again { ended.lane = .healthy }
        ended.isChosen = true
        return ended
    }

    /// Returns the classification with another effect on the request, its lane and the message.
    func replaced(_ verdict: Verdict, _ lane: LaneEffect, _ detail: String?) -> AttemptClassification {
        var replaced = self
        (replaced.verdict, replaced.lane, replaced.detail) = (verdict, lane, detail)
        return replaced
    }
}

/// The effect of an attempt on its lane.
package enum LaneEffect: Hashable, Sendable {
    /// The server works: it responded, even if it refused the request. The lane's failure count is reset.
    case healthy
    /// The lane is unaffected, because the outcome concerns only this request or this machine.
    case none
    /// The queue ended the attempt, for example because the path changed. The request may be retried as soon as the
    /// lane is open.
    case renewed
    /// The request is due again immediately, without a backoff.
    case again
    /// The request failed, and backs off alone. Five failures of a lane in a row close the lane.
    case failure
    /// The lane closes immediately, for a time that grows with each closure.
    case close
    /// Something other than the HTTP server responded: a captive portal, or a peer that does not speak HTTP. The lane
    /// closes as after ``close``, but the response does not indicate overload.
    case foreign
    /// There was no path, or it was found only recently. The lane retries fast: after 50, 100, 200, … ms.
    case reconnect
    /// This machine is short of a resource. The lane retries after 0.5 to 30 s, independently of its other failures.
    case shortage
    /// The lane closes for the time that the server specified with `Retry-After`.
    case closeFor(Duration)
    /// The server refused a request, and another attempt must confirm that. The lane closes for a few seconds, and then
    /// sends one request.
    case unconfirmed
    /// The server's certificate is not trusted. The lane closes for 5 to 15 minutes.
    case distrust
    /// No request of the lane can be sent. The lane waits for a flush or a restart of the queue.
    case hold
}

/// Parses the header field `Retry-After` (RFC 9110 §10.2.3), which contains a number of seconds or a date.
package enum RetryAfter {
    /// The maximum time for which a server can close a lane: 24 hours.
    package static let longest: Duration = .seconds(24 * 3600)

    /// Returns the time to wait, from 0 to ``longest``; `nil` if the value is neither a number nor a date.
    package static func parse(_ text: String, now: Timestamp) -> Duration? {
        let text = text.trimmingSpaces()
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that does not fit into `Int64` counts as the maximum.
            return min(longest, Int64(text).map { .seconds(min($0, 1 << 40)) } ?? longest)
        }
        guard let date = HTTPDate.seconds(text).map({ Timestamp(milliseconds: $0 * 1000) }) else {
            return nil
        }
        return min(longest, max(.zero, date - now))
    }
}

extension String {
    fileprivate func trimmingSpaces() -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[first...last])
    }
}
