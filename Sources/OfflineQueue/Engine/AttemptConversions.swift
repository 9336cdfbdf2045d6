internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop

// Conversions from a stored request to an attempt, and from an attempt's outcome to the values to store.

extension Attempt {
    /// - Parameters:
    ///   - responseLimit: The maximum number of body bytes that a waiting caller accepts; `nil` if none waits.
    ///   - httpVersion: The version of HTTP for a request without its own; `nil` for that of the session.
    ///   - binding: The interface and source address to use; `nil` if the kernel chooses.
    ///   - mayStillBeSent: Returns whether the attempt may still be sent.
    init(
        _ request: ClaimedRequest,
        body: Body,
        responseLimit: Int?,
        httpVersion: HTTPVersion?,
        binding: SocketBinding?,
        mayStillBeSent: @escaping @Sendable () async -> Bool
    ) {
        self.init(
            id: request.id,
            method: request.method,
            url: request.url,
            headers: request.headers + (request.key.map { [$0.header] } ?? []),
            body: body,
            mayBeSentTwice: request.mayBeSentTwice,
            timeouts: request.options.timeouts.extended(by: request.overruns),
            httpVersion: request.options.httpVersion ?? httpVersion,
            isMisdirected: request.lastStatus == FailureTable.misdirectedStatus,
            responseLimit: [responseLimit, request.options.expectation.neededResponseLimit].compactMap(\.self)
                .max(),
            binding: binding,
            credential: request.options.credential,
            mayStillBeSent: mayStillBeSent
        )
    }
}

extension Expectation {
    /// The number of body bytes that an attempt must receive so that the rules can be evaluated; `nil` if the usual
    /// number suffices.
    fileprivate var neededResponseLimit: Int? {
        bodyBytes > Attempt.maximumResponseBytes ? bodyBytes : nil
    }
}

extension Attempt.Body {
    /// Opens a stored body for sending.
    ///
    /// - Returns: The body. If it cannot be opened: a failure with the outcome that the attempt gets instead.
    static func opening(_ body: StoredBody, in spool: BodySpool) async -> Result<Self, UnopenedBody> {
        switch body {
        case .none: return .success(.none)
        case .inline(let data): return .success(.data(data))
        case .unreadable, .gone: return .failure(.missing)
        case .changed(let how): return .failure(UnopenedBody(.changed(how)))
        case .spooled(let body):
            do {
                return .success(.file(try await spool.open(body)))
            } catch {
                return .failure(UnopenedBody(error))
            }
        }
    }
}

/// The outcome of an attempt whose body cannot be sent.
struct UnopenedBody: Error {
    let outcome: AttemptOutcome

    /// The outcome for a row without the body that was accepted.
    static let missing = UnopenedBody(
        outcome: .unsendable(
            reason: "the stored body is missing, or its length differs from that of the accepted body"
        )
    )

    private init(outcome: AttemptOutcome) {
        self.outcome = outcome
    }

    init(_ fault: SpooledBodyFault) {
        switch fault {
        case .missing, .changed: outcome = .unsendable(reason: "\(fault)")
        // 26 is CURLE_READ_ERROR, which is retried and not counted: the file may be readable later.
        case .unreadable(let error):
            outcome = .failure(
                AttemptFailure(
                    code: 26,
                    errno: error.errno,
                    phase: .resolve,
                    message: "\(fault)",
                    isLocalShortage: SystemError.shortages.contains(error.errno)
                )
            )
        }
    }
}

extension ClaimedRequest {
    /// Whether the request is given up if this attempt fails.
    var isLastAttempt: Bool { options.maximumAttempts.map { attempts >= $0 } ?? false }
}

extension AttemptContext {
    init(_ request: ClaimedRequest, origin: Origin, gateIsDown: Bool) {
        self.init(
            origin: origin,
            mayBeSentTwice: request.mayBeSentTwice,
            hasKey: request.key != nil,
            gateIsDown: gateIsDown,
            accept: request.headers.first { $0.name.lowercased() == "accept" }?.value,
            expectation: request.options.expectation,
            lastStatus: request.lastStatus
        )
    }
}

extension AttemptOutcome {
    /// Returns the outcome of an attempt that the queue ended, with the reason as its error.
    ///
    /// An outcome that arrived before the queue could end the attempt is returned unchanged.
    func ended(because reason: String) -> AttemptOutcome {
        guard case .failure(let failure) = self, FailureTable.classify(failure) == .aborted else {
            return self
        }
        return .failure(failure.withMessage(reason))
    }

    /// Whether a timeout ended the attempt (`CURLE_OPERATION_TIMEDOUT`).
    var isTimeout: Bool {
        if case .failure(let failure) = self { failure.code == 28 } else { false }
    }

    /// Whether the host's name could not be looked up (`CURLE_COULDNT_RESOLVE_HOST`), or not in time.
    private var isUnresolved: Bool {
        guard case .failure(let failure) = self, failure.phase == .resolve else { return false }
        return failure.code == 6 || isTimeout
    }

    /// Returns how the attempt went, for the scheduler. A status without a usable response is a response, too.
    func course(lasting duration: Duration, isRetry: Bool) -> AttemptCourse {
        let hasResponse =
            switch self {
            case .response: true
            case .failure(let failure): failure.status != nil
            case .withheld, .unsendable: false
            }
        return AttemptCourse(
            duration: duration,
            hasResponse: hasResponse,
            isTimeout: isTimeout,
            isUnresolved: isUnresolved,
            isRetry: isRetry
        )
    }

    /// Returns the response to store; `nil` if none was received: the first 64 KiB of its body, and the header fields of
    /// ``KeptHeaderFields``, without secrets.
    func storedResponse(_ redactor: Redactor) -> RecordedResponse? {
        guard case .response(let status, let headers, let body, let isTruncated) = self else { return nil }
        let kept = redactor.body(body, isTruncated: isTruncated, limit: Attempt.maximumResponseBytes)
        let fields = headers.compactMap { name, value -> (String, String)? in
            if kept.isChanged, KeptHeaderFields.ofExactBody.contains(name.lowercased()) { return nil }
            return KeptHeaderFields.keptValue(of: name, redactor.text(value)).map { (name, $0) }
        }
        return RecordedResponse(
            status: status,
            headers: Self.limited(fields),
            body: kept.bytes,
            isTruncated: kept.isTruncated
        )
    }

    /// Returns the response for a caller of this process, with all header fields and at most `limit` bytes of its body;
    /// `nil` if none was received.
    ///
    /// It is never stored, and the caller would have received it from the session, too. Nothing is removed from it.
    func response(upTo limit: Int) -> RecordedResponse? {
        guard case .response(let status, let headers, let body, let isTruncated) = self else { return nil }
        return RecordedResponse(
            status: status,
            headers: Self.limited(headers),
            body: body.prefix(limit),
            isTruncated: isTruncated || body.count > limit
        )
    }

    /// Returns the header fields within the size limit (64 KiB); the others are left out. So are values with line
    /// breaks, because the stored form has one field per line.
    private static func limited(_ headers: [(String, String)]) -> [QueueRequest.Header] {
        var room = QueueRequest.maximumHeadBytes
        return headers.compactMap { name, value in
            room -= HeaderText.size(name, value)
            guard room >= 0, !value.utf8.contains(where: { $0 == 10 || $0 == 13 }) else { return nil }
            return QueueRequest.Header(name: name, value: value)
        }
    }

    func record(lasting duration: Duration) -> AttemptRecord {
        var code: Int32 = 0
        if case .failure(let failure) = self { code = failure.code }
        return AttemptRecord(duration: duration, curlCode: code)
    }
}

extension Conclusion {
    init(
        of request: ClaimedRequest,
        _ classification: AttemptClassification,
        _ attempt: (ended: EndedAttempt, duration: Duration)?,
        delay: Duration,
        _ laneClosure: Duration?
    ) {
        self.init(
            sequence: request.sequence,
            token: request.lease.token,
            verdict: classification.verdict,
            delay: delay,
            status: classification.status,
            detail: classification.detail,
            laneClosure: laneClosure,
            attempt: attempt.map { $0.ended.outcome.record(lasting: $0.duration) },
            response: attempt?.ended.stored,
            overrun: classification.overrun
        )
    }
}

extension AttemptClassification {
    static let unreadable = AttemptClassification(
        verdict: .dead(.unsendable, reason: "the URL is invalid"),
        lane: .none,
        status: nil,
        detail: "the URL is invalid"
    )

    /// Whether the request is retried to confirm that the server refuses it.
    var isRetriedForConfirmation: Bool {
        if case .retry = verdict { lane == .unconfirmed } else { false }
    }

    /// Whether the queue ended the attempt itself and repeats it immediately.
    var isRepeatedImmediately: Bool {
        if case .retry = verdict { lane == .renewed } else { false }
    }

    func settled(lane: Int64, due: Moment) -> Scheduler.Event {
        var isRetry = false
        if case .retry = verdict { isRetry = true }
        return .settled(lane: lane, due: isRetry ? due : nil, isDistrusted: verdict == .held(.trust))
    }
}

extension SendResult {
    init(id: String, _ classification: AttemptClassification, body: Data) {
        switch classification.verdict {
        case .delivered(let status): self = .delivered(id: id, status: status, body: body)
        case .dead(_, let reason): self = .dead(id: id, reason: reason)
        case .held(let reason): self = .queued(id: id, reason: .held(reason))
        case .retry: self = .queued(id: id, reason: .attemptFailed(classification.detail ?? ""))
        }
    }
}

/// An attempt that has ended, and what is kept of it.
struct EndedAttempt: Sendable {
    /// The outcome. Its messages contain no secrets. A response is as the server sent it.
    var outcome: AttemptOutcome
    /// The response without secrets, for the store and for the callers of ``OfflineQueue/send(_:options:)``; `nil` if
    /// none was received.
    let stored: RecordedResponse?
    let redactor: Redactor

    /// - Parameter redactor: Removes the secrets of the attempt. Default: it has none.
    init(_ outcome: AttemptOutcome, _ redactor: Redactor = .none) {
        self.outcome = outcome.redacted(by: redactor)
        stored = outcome.storedResponse(redactor)
        self.redactor = redactor
    }
}
