internal import ClientCore
internal import Foundation
internal import NIOHTTP1
internal import NetworkReachability
internal import OfflineQueue

/// Routes that accept requests.
extension QueueRoutes {
    var sendRoutes: [ControlRouter.Route] {
        [
            route(.POST, "/v1/requests", access: .submit, classify: { _ in .send }) { try await send($0) }
        ]
    }

    private func send(_ request: ControlRequest) async throws -> ControlResponse {
        let message = try request.message(
            ControlMessage.Send.self,
            userInfo: [EnqueueOptions.defaults: defaults.options]
        )
        try requireRunning()
        try message.checkSpelling()
        let wanted = message.request
        var options = message.options
        options.submitter = request.caller.submitter(quota)
        // A repeated request is stored already, whether its credential still exists or not.
        let credentials = [options.credential, options.onDone?.credential].compactMap(\.self)
        if !credentials.isEmpty, try await !isKnown(options.id) {
            // A credential that cannot be used now may be repaired later; its requests are held until then.
            try await requireCredentials(credentials, usable: false)
        }
        let sent =
            switch message.queue {
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
                holdReason: reason.holdReason
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
}

extension ControlMessage.Send {
    /// Refuses what a user has mistyped. A program that uses the library may send it.
    fileprivate func checkSpelling() throws(QueueError) {
        try RequestChecks.checkSpelling(ofMethod: request.method)
        try RequestChecks.check(options.httpVersion, of: request.url)
    }

    /// The problem with which a service would refuse the message, apart from its body; `nil` if the service would
    /// accept it. With this, a client can report wrong values when no service is running.
    package var refusal: ControlMessage.ProblemDetails? {
        do {
            // The service sees the options in this form, with its defaults.
            let sent = try QueueJSON.decoder.decode(Self.self, from: QueueJSON.encoder.encode(self))
            try sent.checkSpelling()
            _ = try NewRequest(sent.request, options: sent.options)
            return nil
        } catch {
            return (error as? QueueError).map { ControlMessage.ProblemDetails(Problem($0)) }
        }
    }
}

extension ControlMessage.Send: NamedMembers {
    static let memberNames =
        QueueRequest.CodingKeys.allCases.map(\.rawValue) + EnqueueOptions.memberNames + ["queue"]

    func object(named name: String) -> Any? {
        switch name {
        case "staged": staged
        case "onDone": options.onDone
        case "idempotency": options.idempotencyKey
        default: nil
        }
    }
}

extension IdempotencyKey: NamedMembers {
    static let memberNames = CodingKeys.allCases.map(\.rawValue)

    func object(named name: String) -> Any? { nil }
}

extension ControlMessage.Send: ChoiceMessage {
    static var choices: [String: [String]] {
        [
            "queue": ControlMessage.QueueMode.allCases.map(\.rawValue),
            "http_version": HTTPVersion.allCases.map(\.rawValue),
            "durability": Durability.allCases.map(\.rawValue),
            "when_full": FullQueuePolicy.allCases.map(\.rawValue),
        ]
    }
}

extension ControlMessage.ProblemDetails {
    fileprivate init(_ problem: Problem) {
        self.init(status: Int(problem.status.code), code: problem.code, detail: problem.detail)
    }
}

extension QueueRoutes {
    /// Refuses the names of credentials that the service does not have. Without the service, the credentials are not
    /// known. The queue itself refuses invalid names.
    ///
    /// - Parameter usable: Whether to refuse credentials that exist, but cannot be used until they change, as well.
    func requireCredentials(_ names: [String?], usable: Bool) async throws {
        guard isRunning else { return }
        for name in names.compactMap(\.self) where CredentialName.isValid(name) {
            guard let fault = await queue.credentialFault(of: name) else { continue }
            guard usable || fault.isUnknown else { continue }
            throw Problem(fault, known: await queue.credentialNames)
        }
    }
}

extension Problem {
    fileprivate init(_ fault: WithheldReason, known names: Set<String>) {
        guard fault.isUnknown else {
            self.init(.badRequest, code: "unusable_credential", detail: fault.reason)
            return
        }
        let known = names.isEmpty ? "" : "; known: " + names.sorted().joined(separator: ", ")
        self.init(.badRequest, code: "unknown_credential", detail: fault.reason + known)
    }
}
