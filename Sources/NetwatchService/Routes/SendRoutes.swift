internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// Routes that accept requests.
extension QueueRoutes {
    var sendRoutes: [ControlRouter.Route] {
        [
            route(.POST, "/v1/requests", access: .submit, classify: { _ in .send }) { try await send($0) }
        ]
    }

    private func send(_ request: ControlRequest) async throws -> ControlResponse {
        let message = try request.message(ControlMessage.Send.self)
        try requireRunning()
        let wanted = try message.queueRequest()
        var options = try message.options(defaults.options)
        options.submitter = request.caller.submitter(quota)
        // A repeated request is stored already, whether its credential still exists or not.
        let credentials = [options.credential, options.onDone?.credential].compactMap(\.self)
        if !credentials.isEmpty, try await !isKnown(options.id) {
            // A credential that cannot be used now may be repaired later; its requests are held until then.
            try await requireCredentials(credentials, usable: false)
        }
        let sent =
            switch try message.queueMode() {
            case .auto: try await sendNow(wanted, options)
            case .always: try await enqueue(wanted, options)
            }
        return .json(sent, status: sent.state == "queued" ? .accepted : .ok, encoder: ControlMessage.encoder)
    }

    private func isKnown(_ id: String?) async throws -> Bool {
        guard let id else { return false }
        return try await !queue.submitters(of: [id]).isEmpty
    }

    private func sendNow(_ request: QueueRequest, _ options: EnqueueOptions) async throws
        -> ControlMessage.Sent
    {
        let (result, outcome) = try await queue.sendReportingOutcome(request, options: options)
        let sent = ControlMessage.Sent(result)
        guard let id = sent.id else { return sent }
        if outcome == .known { return try await known(id) }
        guard result.isDescribedByStore else { return sent }
        // The queue's result contains only the reason; the store also contains the server's response, the cause of a
        // hold, and the request for which this one waits.
        return try await queue.request(id).map(ControlMessage.Sent.init) ?? sent
    }

    private func enqueue(_ request: QueueRequest, _ options: EnqueueOptions) async throws
        -> ControlMessage.Sent
    {
        let receipt = try await queue.enqueue(request, options: options)
        switch receipt.outcome {
        case .accepted: return ControlMessage.Sent(id: receipt.id, state: "queued")
        case .dropped: return ControlMessage.Sent(.dropped(id: receipt.id))
        case .known: return try await known(receipt.id)
        }
    }

    /// Returns the state of a request whose id the queue already knew.
    private func known(_ id: String) async throws -> ControlMessage.Sent {
        let stored = try await queue.request(id).map(ControlMessage.Sent.init)
        var sent = stored ?? ControlMessage.Sent(.queued(id: id, reason: .alreadyQueued))
        sent.known = true
        return sent
    }
}

extension SendResult {
    fileprivate var isDescribedByStore: Bool {
        switch self {
        case .dead, .queued(_, .held), .queued(_, .behindEarlier), .queued(_, .blocked): true
        default: false
        }
    }
}

extension QueuedReason {
    fileprivate var holdReason: HoldReason? {
        guard case .held(let reason) = self else { return nil }
        return reason
    }
}

extension ControlMessage.Sent {
    init(_ result: SendResult) {
        switch result {
        case .delivered(let id, let status, let body):
            self.init(
                id: id,
                state: "delivered",
                status: status,
                bodyBase64: body.isEmpty ? nil : body.base64EncodedString()
            )
        case .queued(let id, let reason):
            self.init(
                id: id,
                state: "queued",
                reason: reason.words(at: Date()),
                holdReason: reason.holdReason?.rawValue
            )
        case .dead(let id, let reason):
            self.init(id: id, state: "dead", reason: reason)
        case .dropped(let id):
            self.init(
                id: id,
                state: "dropped",
                reason: "the queue or the lane is full, or the quota of the user is reached"
            )
        }
    }

    fileprivate init(_ details: RequestDetails) {
        self.init(ControlMessage.Details(details))
    }
}
