internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop

// How an attempt is made of a stored request, and what is made of its outcome.

extension Attempt {
    init(_ request: ClaimedRequest, body: Body) {
        self.init(
            id: request.id,
            method: request.method,
            url: request.url,
            headers: request.headers + (request.key.map { [$0.header] } ?? []),
            body: body,
            mayBeSentTwice: request.mayBeSentTwice,
            timeouts: request.timeouts.stretched(by: request.overruns),
            isMisdirected: request.lastStatus == FailureTable.misdirectedStatus
        )
    }
}

extension Attempt.Body {
    /// What was accepted, or what is to be said when that cannot be had any more.
    static func opening(_ body: NewRequest.Body, in spool: BodySpool) async -> Result<Self, UnopenedBody> {
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

/// A body that cannot be sent, as the outcome of the attempt.
struct UnopenedBody: Error {
    let outcome: AttemptOutcome

    init(_ fault: SpooledBodyFault) {
        switch fault {
        case .missing, .changed: outcome = .unsendable(reason: "\(fault)")
        // CURLE_READ_ERROR: this machine is short of something for the moment.
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
    /// What is told of an attempt that was ended because its path was lost.
    func endedByLoss(of host: String) -> AttemptOutcome {
        guard case .failure(let failure) = self, FailureTable.classify(failure) == .aborted else {
            return self
        }
        return .failure(failure.saying("the path to \(host) was lost"))
    }

    /// What is kept of the answer, if one came.
    var response: RecordedResponse? {
        guard case .response(let status, let headers, let body, let isTruncated) = self else { return nil }
        return RecordedResponse(
            status: status,
            headers: Self.kept(headers),
            body: body.prefix(Attempt.maximumResponseBytes),
            isTruncated: isTruncated || body.count > Attempt.maximumResponseBytes
        )
    }

    /// Values come from a server: as many as fit, none of which could be taken for two.
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
        verdict: .dead(.unsendable, reason: "its URL cannot be read"),
        lane: .none,
        status: nil,
        detail: "its URL cannot be read"
    )

    /// Whether the attempt was ended so that another one takes its place.
    var isMadeAgainAtOnce: Bool {
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
