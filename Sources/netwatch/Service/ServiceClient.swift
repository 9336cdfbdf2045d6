internal import Foundation
internal import NetwatchService

/// Speaks the control API.
struct ServiceClient {
    private let transport: any ControlTransport
    private let patience: Duration

    /// - Parameters:
    ///   - transport: Who answers.
    ///   - patience: How long an answer may take before it is given up.
    init(_ transport: any ControlTransport, patience: Duration = .seconds(10)) {
        self.transport = transport
        self.patience = patience
    }

    /// - Parameter path: The service's socket; `nil` for the usual place.
    init(path: String?, patience: Duration = .seconds(10)) {
        self.init(SocketTransport(path: path ?? ServicePaths().socketForCommands), patience: patience)
    }

    /// Asks for something and decodes the answer.
    ///
    /// - Parameter extra: How much longer than usual it may take.
    func get<Answer: Decodable>(
        _ target: String,
        extra: Duration = .zero,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        try await decoded(ControlExchange(method: "GET", target: target, patience: patience + extra))
    }

    /// Asks for something to be done and decodes the answer.
    func post<Answer: Decodable>(_ target: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        try await decoded(ControlExchange(method: "POST", target: target, patience: patience))
    }

    /// Asks for something to be done with a message and decodes the answer.
    func post<Answer: Decodable>(
        _ target: String,
        _ message: some Encodable,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "POST", target: target, patience: Self.longest)
        do {
            exchange.body = try ControlMessage.encoder.encode(message)
        } catch {
            throw CommandError(.unknown, "could not encode the request: \(error)")
        }
        exchange.contentType = "application/json"
        return try await decoded(exchange)
    }

    /// Hands over a piece of a body.
    func patch<Answer: Decodable>(
        _ target: String,
        _ bytes: Data,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var exchange = ControlExchange(method: "PATCH", target: target, patience: Self.longest)
        exchange.body = bytes
        exchange.contentType = "application/octet-stream"
        return try await decoded(exchange)
    }

    /// What is written may wait for the disk, and a send for the first attempt, which has limits of its own.
    private static let longest: Duration = .seconds(620)

    private func decoded<Answer: Decodable>(_ exchange: ControlExchange) async throws(CommandError) -> Answer
    {
        let (status, data) = try await transport.answer(to: exchange)
        guard (200..<300).contains(status) else { throw refusal(status, data) }
        do {
            return try ControlMessage.decoder.decode(Answer.self, from: data)
        } catch {
            throw CommandError(.unknown, "\(transport.name) gave an answer that makes no sense: \(error)")
        }
    }

    private func refusal(_ status: Int, _ data: Data) -> CommandError {
        guard let problem = try? ControlMessage.decoder.decode(ControlMessage.ProblemDetails.self, from: data)
        else {
            return CommandError(.unknown, "\(transport.name) answered with HTTP \(status)")
        }
        return CommandError(problem)
    }
}

extension CommandError {
    fileprivate init(_ problem: ControlMessage.ProblemDetails) {
        let message = Printer.printable(problem.detail)
        switch problem.code {
        case "not_running":
            self.init(.unavailable, message, hint: "`netwatch serve` starts it")
        case "unknown_request", "unknown_lane", "ambiguous_id", "refused":
            self.init(.no, message)
        case "secret_header":
            self.init(.usage, message, hint: "`--queue never` sends it at once, without storing it")
        case "store_unusable":
            self = CommandError(.unusableStore, message).leavingDoubt
        case "invalid_import":
            // The arguments are right; what they name is not what it was.
            self.init(.unknown, message)
        case "store_failed", "stopped", "internal_error":
            self = CommandError(.unknown, message).leavingDoubt
        case _ where problem.status == 400 || problem.status == 413:
            // What the caller gave is wrong.
            self.init(.usage, message)
        default:
            self.init(.unknown, message)
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
