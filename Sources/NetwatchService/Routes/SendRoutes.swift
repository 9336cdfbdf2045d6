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

/// Converts a message to the queue's types. Only its form is checked here; the queue checks the values.
extension ControlMessage.Send {
    func queueRequest() throws(Problem) -> QueueRequest {
        QueueRequest(
            method: try queueMethod(),
            url: url,
            headers: try queueHeaders(),
            body: try queueBody()
        )
    }

    private func queueMethod() throws(Problem) -> String {
        let method = method ?? "GET"
        do throws(QueueError) {
            try RequestChecks.checkSpelling(ofMethod: method)
        } catch {
            throw Problem(error)
        }
        return method
    }

    private func queueHeaders() throws(Problem) -> [QueueRequest.Header] {
        var result: [QueueRequest.Header] = []
        for header in headers ?? [] {
            guard header.count == 2 else {
                throw .malformedBody("each element of `headers` must be an array of a name and a value")
            }
            result.append(QueueRequest.Header(name: header[0], value: header[1]))
        }
        return result
    }

    private func queueBody() throws(Problem) -> QueueRequest.Body {
        guard [body != nil, bodyBase64 != nil, staged != nil].count(where: \.self) <= 1 else {
            throw .malformedBody("`body`, `body_base64` and `staged` cannot be combined")
        }
        if let staged { return .staged(id: staged.id, size: staged.size) }
        guard let bodyBase64 else { return .data(Data((body ?? "").utf8)) }
        guard let data = Data(base64Encoded: bodyBase64) else {
            throw .malformedBody("`body_base64` is not valid Base64")
        }
        return .data(data)
    }

    /// The problem with which a service would refuse the message, apart from its body; `nil` if the service would
    /// accept it. With this, a client can report wrong values when no service is running.
    package var refusal: ControlMessage.ProblemDetails? {
        do {
            _ = try NewRequest(try queueRequest(), options: try options())
            _ = try queueMode()
            return nil
        } catch let problem as Problem {
            return ControlMessage.ProblemDetails(problem)
        } catch {
            return (error as? QueueError).map { ControlMessage.ProblemDetails(Problem($0)) }
        }
    }

    func queueMode() throws(Problem) -> ControlMessage.QueueMode {
        try queue.map { text throws(Problem) in try Self.value(text, of: "queue") } ?? .auto
    }

    /// - Parameter defaults: The time to live, the timeouts and the durability that the message may replace.
    func options(_ defaults: EnqueueOptions = EnqueueOptions()) throws -> EnqueueOptions {
        var options = defaults
        (options.lane, options.isFIFO, options.id) = (lane, fifo ?? false, id)
        if let priority { options.priority = priority }
        if let ttlSeconds {
            options.timeToLive = try Self.duration(
                ttlSeconds,
                of: "ttl_seconds",
                accepted: "1 ms to 366 days"
            )
        }
        options.timeouts = try timeouts(defaults.timeouts)
        if let httpVersion { options.httpVersion = try Self.value(httpVersion, of: "http_version") }
        try RequestChecks.check(options.httpVersion, of: url)
        options.statusRules = StatusRules(
            retry: try Self.statuses(retryStatuses, of: "retry_statuses"),
            dead: try Self.statuses(deadStatuses, of: "dead_statuses")
        )
        options.deadline = deadline
        options.notBefore = notBefore
        options.maximumAttempts = maxAttempts
        options.replaceKey = replaceKey
        options.dependencies = after ?? []
        if let expect { options.expectation = try Expectation(parsing: expect) }
        options.isAtMostOnce = atMostOnce ?? false
        options.idempotencyKey = try queueKey()
        options.credential = credential
        options.allowsSignature = allowSignature ?? false
        options.tag = tag
        options.onDone = onDone.map { Webhook(url: $0.url, credential: $0.credential) }
        options.constraints.isUnmetered = onlyUnmetered ?? false
        options.constraints.interfaceKinds = Set(try (interfaceKinds ?? []).map(RequestConstraints.kind))
        options.constraints.window = try window.map { text throws(QueueError) in
            try DailyWindow(parsing: text)
        }
        if let durability { options.durability = try Self.value(durability, of: "durability") }
        if let whenFull { options.whenFull = try Self.value(whenFull, of: "when_full") }
        return options
    }

    /// Converts seconds to a duration. Rejects only numbers for which `Duration.seconds` would trap; the queue checks
    /// the range.
    private static func duration(_ seconds: Double, of name: String, accepted: String) throws(Problem)
        -> Duration
    {
        guard (-1e9...1e9).contains(seconds) else {
            throw Problem(
                .badRequest,
                code: QueueError.Code.invalidOption.rawValue,
                detail: "`\(name)` is \(seconds); it must be \(accepted)"
            )
        }
        return .seconds(seconds)
    }

    private static func statuses(_ text: String?, of name: String) throws(Problem) -> [ClosedRange<Int>] {
        guard let text else { return [] }
        do throws(QueueError) { return try StatusRanges.parse(text) } catch {
            throw Problem(
                .badRequest,
                code: QueueError.Code.invalidOption.rawValue,
                detail: "`\(name)`: \(error.message)"
            )
        }
    }

    private func timeouts(_ defaults: AttemptTimeouts) throws(Problem) -> AttemptTimeouts {
        func timeout(_ seconds: Double, _ name: String) throws(Problem) -> Duration {
            try Self.duration(seconds, of: name, accepted: "1 ms to 24 hours")
        }
        var timeouts = defaults
        if let connectTimeoutSeconds {
            timeouts.connect = try timeout(connectTimeoutSeconds, "connect_timeout_seconds")
        }
        if let responseTimeoutSeconds {
            timeouts.response = try timeout(responseTimeoutSeconds, "response_timeout_seconds")
        }
        if let totalTimeoutSeconds {
            timeouts.total = try timeout(totalTimeoutSeconds, "total_timeout_seconds")
        }
        return timeouts
    }

    private func queueKey() throws(Problem) -> IdempotencyKey {
        guard idempotency == nil || idempotencyKey == nil else {
            throw .malformedBody("`idempotency` and `idempotency_key` cannot be combined")
        }
        let value = idempotency?.key ?? idempotencyKey
        var key = value.map(IdempotencyKey.value) ?? .automatic
        if idempotency?.none == true {
            guard value == nil else {
                throw .malformedBody("`idempotency.none` cannot be combined with a key")
            }
            key = .none
        }
        if let header = idempotency?.header { key.headerName = header }
        key.isQuoted = idempotency?.quoted ?? false
        return key
    }

    private static func value<Value: RawRepresentable & CaseIterable>(
        _ text: String,
        of name: String
    ) throws(Problem) -> Value where Value.RawValue == String {
        if let value = Value(rawValue: text) { return value }
        let accepted = Value.allCases.map(\.rawValue).joined(separator: ", ")
        throw Problem(
            .badRequest,
            code: QueueError.Code.invalidOption.rawValue,
            detail: "`\(name)` is `\(text.prefix(80))`; it must be one of \(accepted)"
        )
    }
}

extension ControlMessage.Send: ChoiceMessage {
    static var choices: [String: [String]] {
        [
            "queue": ControlMessage.QueueMode.allCases.map(\.rawValue),
            "http_version": HTTPVersion.allCases.map(\.rawValue),
            "interface_kinds": InterfaceType.allCases.map(\.rawValue),
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
