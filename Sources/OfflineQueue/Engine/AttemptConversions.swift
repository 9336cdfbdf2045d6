internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop

// Conversions from a stored request to an attempt, and from the attempt's outcome to the values that are stored.

extension Attempt {
    init(_ request: ClaimedRequest, body: Body) {
        self.init(
            id: request.id,
            method: request.method,
            url: request.url,
            headers: request.headers + (request.key.map { [$0.header] } ?? []),
            body: body,
            mayBeSentTwice: request.mayBeSentTwice,
            timeouts: request.timeouts.extended(by: request.overruns),
            isMisdirected: request.lastStatus == FailureTable.misdirectedStatus
        )
    }
}

extension Attempt.Body {
    /// Opens a stored body. The failure holds the attempt's outcome if the body is no longer available.
    static func opening(_ body: StoredBody, in spool: BodySpool) async -> Result<Self, UnopenedBody> {
        switch body {
        case .none: return .success(.none)
        case .inline(let data): return .success(.data(data))
        case .unreadable, .gone: return .failure(UnopenedBody(.missing))
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

    init(_ fault: SpooledBodyFault) {
        switch fault {
        case .missing, .changed: outcome = .unsendable(reason: "\(fault)")
        // CURLE_READ_ERROR is a local failure: this machine may be short of a resource for the moment.
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
    var mayBeSentTwice: Bool {
        !isAtMostOnce && (key != nil || HTTPMethod.isIdempotent(method))
    }
}

extension AttemptContext {
    init(_ request: ClaimedRequest, origin: Origin, gateIsDown: Bool) {
        self.init(
            origin: origin,
            mayBeSentTwice: request.mayBeSentTwice,
            hasKey: request.key != nil,
            gateIsDown: gateIsDown,
            accept: request.headers.first { $0.name.lowercased() == "accept" }?.value,
            expectation: request.expectation,
            lastStatus: request.lastStatus
        )
    }
}

extension AttemptOutcome {
    /// Returns the outcome with an error that names the lost path, if the attempt was ended because of it.
    func endedByLoss(of host: String) -> AttemptOutcome {
        guard case .failure(let failure) = self, FailureTable.classify(failure) == .aborted else {
            return self
        }
        return .failure(failure.withMessage("the path to \(host) was lost"))
    }

    /// The response to store, if one was received.
    var response: RecordedResponse? {
        guard case .response(let status, let headers, let body, let isTruncated) = self else { return nil }
        return RecordedResponse(
            status: status,
            headers: Self.kept(headers),
            body: body.prefix(Attempt.maximumResponseBytes),
            isTruncated: isTruncated || body.count > Attempt.maximumResponseBytes
        )
    }

    /// Returns the header fields to store. A server chooses the values: fields beyond the size limit and values with
    /// line breaks, which would be read back as two lines, are left out.
    private static func kept(_ headers: [(String, String)]) -> [QueueRequest.Header] {
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

extension Judgement {
    static let unreadable = Judgement(
        verdict: .dead(.unsendable, reason: "the URL is invalid"),
        lane: .none,
        status: nil,
        detail: "the URL is invalid"
    )

    /// Whether the attempt was ended only to be repeated immediately.
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
    init(id: String, _ judgement: Judgement, body: Data) {
        switch judgement.verdict {
        case .delivered(let status): self = .delivered(id: id, status: status, body: body)
        case .dead(_, let reason): self = .dead(id: id, reason: reason)
        case .held(let reason): self = .queued(id: id, reason: .held(reason))
        case .retry: self = .queued(id: id, reason: .attemptFailed(judgement.detail ?? ""))
        }
    }
}
