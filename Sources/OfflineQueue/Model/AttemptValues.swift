internal import ClientCore
internal import Foundation

// How an attempt is made of a stored request, and what is made of its outcome.

extension Attempt {
    init(_ request: ClaimedRequest) {
        id = request.id
        method = request.request.method
        url = request.request.url
        headers = request.request.headers + request.keyHeaders
        body = request.request.body.isEmpty ? .none : .data(request.request.body)
    }
}

extension ClaimedRequest {
    var mayBeSentTwice: Bool { idempotencyKey != nil || HTTPMethod.isIdempotent(request.method) }

    fileprivate var keyHeaders: [QueueRequest.Header] {
        idempotencyKey.map { [QueueRequest.Header(name: NewRequest.keyHeader, value: $0)] } ?? []
    }
}

extension AttemptContext {
    init(_ request: ClaimedRequest, origin: Origin, gateIsDown: Bool) {
        self.init(
            origin: origin,
            mayBeSentTwice: request.mayBeSentTwice,
            hasKey: request.idempotencyKey != nil,
            gateIsDown: gateIsDown,
            accept: request.request.headers.first { $0.name.lowercased() == "accept" }?.value
        )
    }
}

extension AttemptOutcome {
    var keptBody: Data {
        guard case .response(_, _, let body, _) = self else { return Data() }
        return body.prefix(Attempt.maximumResponseBytes)
    }
}

extension Judgement {
    static let unreadable = Judgement(
        verdict: .dead(reason: "its URL cannot be read"),
        lane: .none,
        status: nil,
        detail: "its URL cannot be read"
    )

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
        case .dead(let reason): self = .dead(id: id, reason: reason)
        case .held(let reason): self = .queued(id: id, reason: .held(reason))
        case .retry: self = .queued(id: id, reason: .attemptFailed(judgement.detail ?? ""))
        }
    }
}
