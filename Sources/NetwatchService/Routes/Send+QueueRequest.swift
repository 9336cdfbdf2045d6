internal import ClientCore
internal import Foundation
internal import NIOHTTP1
internal import NetworkReachability
internal import OfflineQueue

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
