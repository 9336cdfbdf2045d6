internal import Foundation
internal import NetwatchService

/// A client of the control API. While the service is busy, it retries for a limited time.
struct ServiceClient {
    private let transport: any ControlTransport
    private let patience: Duration
    private var busyPatience: Duration
    /// Called whenever the service was busy, before the next attempt.
    private var whileBusy: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - transport: Sends the requests.
    ///   - patience: How long to wait for a response.
    ///   - busyPatience: How long to retry while the service is busy. Default 5 s.
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

    /// Returns a client that retries longer while the service is busy, for work that would be expensive to repeat.
    ///
    /// - Parameter body: Called whenever the service was busy.
    func persisting(_ body: @escaping @Sendable () async -> Void) -> ServiceClient {
        var client = self
        (client.busyPatience, client.whileBusy) = (Self.longest, body)
        return client
    }

    /// Sends a GET request and decodes the response.
    ///
    /// - Parameters:
    ///   - extra: Additional time for the response.
    ///   - busyLimit: How long to retry while the service is busy. Default: the client's limit.
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

    /// Sends a POST request without a body and decodes the response.
    func post<Answer: Decodable>(_ target: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        try await decoded(ControlExchange(method: "POST", target: target, patience: Self.longest))
    }

    /// Sends a POST request with a message and decodes the response.
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

    /// Uploads a piece of a body. The service rejects a second copy, because its offset is wrong then.
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

    /// Sends a DELETE request and decodes the response.
    func delete<Answer: Decodable>(_ target: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "DELETE", target: target, patience: patience)
        exchange.isRepeatable = true
        return try await decoded(exchange)
    }

    /// A change may wait for the disk and for a large change before it. A send may wait for its first attempt, which
    /// has its own timeouts.
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

    /// Sends a request, and retries while the service is busy. A busy service has done nothing, so any request may be
    /// repeated.
    private func answerOnceThereIsRoom(
        to exchange: ControlExchange
    ) async throws(CommandError) -> ControlAnswer {
        let deadline = ContinuousClock.now + min(busyPatience, exchange.busyLimit ?? busyPatience)
        while true {
            let answer = try await transport.answer(to: exchange)
            guard answer.isBusy, let pause = answer.retryAfter, .now + pause < deadline else { return answer }
            // A random delay keeps commands that were refused together from retrying together.
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
    /// Whether the response is 503 with `Retry-After`: the service had no capacity for the request and did nothing.
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
            // The arguments are valid, but the file they name is not.
            return CommandError(.unknown, message)
        case "store_failed", "store_replaced", "stopped", "internal_error":
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
    /// The text escaped as a path segment or a query value (RFC 3986 §2.3).
    var urlEscaped: String {
        // A path segment of dots only would be removed from the URL (RFC 3986 §5.2.4).
        if self == "." || self == ".." { return replacing(".", with: "%2e") }
        return utf8.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain =
                byte < 0x80 && (character.isLetter || character.isNumber || "-._~".contains(character))
            return isPlain ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
