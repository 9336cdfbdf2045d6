internal import Foundation
internal import NetwatchService

/// Speaks the control API. While the service is busy, it tries again for a while.
struct ServiceClient {
    private let transport: any ControlTransport
    private let patience: Duration
    private var busyPatience: Duration
    /// Called whenever the service was busy, before it is asked again.
    private var whileBusy: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - transport: Who answers.
    ///   - patience: How long an answer may take before it is given up.
    ///   - busyPatience: For how long a busy service is asked again. Default 5 s.
    init(
        _ transport: any ControlTransport,
        patience: Duration = .seconds(10),
        busyPatience: Duration = .seconds(5)
    ) {
        self.transport = transport
        self.patience = patience
        self.busyPatience = busyPatience
    }

    /// - Parameter path: The service's socket.
    init(path: String, patience: Duration = .seconds(10), busyPatience: Duration = .seconds(5)) {
        self.init(SocketTransport(path: path), patience: patience, busyPatience: busyPatience)
    }

    /// A client that does not give up soon when the service is busy, because much would be lost.
    ///
    /// - Parameter body: Called whenever the service was busy.
    func persisting(_ body: @escaping @Sendable () async -> Void) -> ServiceClient {
        var client = self
        (client.busyPatience, client.whileBusy) = (Self.longest, body)
        return client
    }

    /// Asks for something and decodes the answer.
    ///
    /// - Parameters:
    ///   - extra: How much longer than usual it may take.
    ///   - busyLimit: How long a busy service is asked again at most. Default: as long as ever.
    func get<Answer: Decodable>(
        _ target: String,
        extra: Duration = .zero,
        busyLimit: Duration? = nil,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "GET", target: target, patience: patience + extra)
        exchange.isRepeatable = true
        exchange.busyLimit = busyLimit
        return try await decoded(exchange)
    }

    /// Asks for something to be done and decodes the answer.
    func post<Answer: Decodable>(_ target: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        try await decoded(ControlExchange(method: "POST", target: target, patience: Self.longest))
    }

    /// Asks for something to be done with a message and decodes the answer.
    ///
    /// - Parameter isRepeatable: Whether the service recognises a second copy.
    func post<Answer: Decodable>(
        _ target: String,
        _ message: some Encodable,
        isRepeatable: Bool = false,
        within limit: Duration = Self.longest,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "POST", target: target, patience: limit)
        do {
            exchange.body = try ControlMessage.encoder.encode(message)
        } catch {
            throw CommandError(.unknown, "could not encode the request: \(error)")
        }
        exchange.contentType = "application/json"
        exchange.isRepeatable = isRepeatable
        return try await decoded(exchange)
    }

    /// Uploads a piece of a body. A second copy of it is refused, since its offset is wrong then.
    func patch<Answer: Decodable>(
        _ target: String,
        _ bytes: Data,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "PATCH", target: target, patience: Self.longest)
        exchange.body = bytes
        exchange.contentType = "application/octet-stream"
        exchange.isRepeatable = true
        return try await decoded(exchange)
    }

    /// Removes something and decodes the answer.
    func delete<Answer: Decodable>(_ target: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "DELETE", target: target, patience: patience)
        exchange.isRepeatable = true
        return try await decoded(exchange)
    }

    /// A change may wait for the disk and for a large one before it, a send for its first attempt, which has limits of its
    /// own.
    static let longest: Duration = .seconds(620)

    private func decoded<Answer: Decodable>(_ exchange: ControlExchange) async throws(CommandError) -> Answer
    {
        let answer = try await answerOnceThereIsRoom(to: exchange)
        guard (200..<300).contains(answer.status) else { throw refusal(answer) }
        do {
            return try ControlMessage.decoder.decode(Answer.self, from: answer.body)
        } catch {
            throw CommandError(.unknown, "\(transport.name) gave an answer that makes no sense: \(error)")
        }
    }

    /// A busy service has done nothing, so any exchange may be repeated.
    private func answerOnceThereIsRoom(
        to exchange: ControlExchange
    ) async throws(CommandError) -> ControlAnswer {
        let deadline = ContinuousClock.now + min(busyPatience, exchange.busyLimit ?? busyPatience)
        while true {
            let answer = try await transport.answer(to: exchange)
            guard answer.isBusy, let pause = answer.retryAfter, .now + pause < deadline else { return answer }
            // Many commands that were refused together should not come back together.
            let delay = pause + .milliseconds(Int64.random(in: 50...300))
            await whileBusy?()
            guard (try? await Task.sleep(for: delay)) != nil else { return answer }
        }
    }

    private func refusal(_ answer: ControlAnswer) -> CommandError {
        let problem = try? ControlMessage.decoder.decode(
            ControlMessage.ProblemDetails.self,
            from: answer.body
        )
        let detail = problem.map { Printer.printable($0.detail) }
        if answer.isBusy { return .busy(transport.name, detail ?? "it answered HTTP \(answer.status)") }
        guard let problem else {
            return CommandError(.unknown, "\(transport.name) answered with HTTP \(answer.status)")
        }
        return CommandError(problem)
    }
}

extension ControlAnswer {
    /// 503 with `Retry-After`: the service has no room for the request and did nothing.
    fileprivate var isBusy: Bool { status == 503 && retryAfter != nil }
}

extension CommandError {
    fileprivate init(_ problem: ControlMessage.ProblemDetails) {
        self = Self.meaning(of: problem)
        code = problem.code
        offset = problem.offset
    }

    private static func meaning(of problem: ControlMessage.ProblemDetails) -> CommandError {
        let message = Printer.printable(problem.detail)
        switch problem.code {
        case "not_running":
            return CommandError(.unavailable, message, hint: "`netwatch serve` starts it")
        case "too_many_staged_bodies":
            return CommandError(.tryAgain, message, hint: "nothing was changed: try again in a few seconds")
        case "unknown_request", "unknown_lane", "refused":
            return CommandError(.no, message)
        case "secret_header":
            return CommandError(.usage, message, hint: "`--queue never` sends it at once, without storing it")
        case "store_unusable":
            return CommandError(.unusableStore, message).leavingDoubt
        case "invalid_import":
            // The arguments are right; the file they name is not.
            return CommandError(.unknown, message)
        case "store_failed", "stopped", "internal_error":
            return CommandError(.unknown, message).leavingDoubt
        case _ where problem.status == 403:
            return CommandError(.noPermission, message)
        case _ where [400, 413, 422].contains(problem.status):
            return CommandError(.usage, message)
        default:
            return CommandError(.unknown, message)
        }
    }
}

extension String {
    /// The text as one part of a path, or one value of a query (RFC 3986 §2.3).
    var urlEscaped: String {
        utf8.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain =
                byte < 0x80 && (character.isLetter || character.isNumber || "-._~".contains(character))
            return isPlain ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
