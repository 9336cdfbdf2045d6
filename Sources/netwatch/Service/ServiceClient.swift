internal import Foundation
internal import NetwatchService

/// A client of the control API. While the service is busy, it retries a request for a limited time.
struct ServiceClient {
    private let transport: any ServiceTransport
    /// How long to wait for a response.
    private static let timeout: Duration = .seconds(10)
    private var busyTimeout: Duration
    /// Called each time the service was busy, before the retry.
    private var onBusy: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - transport: Sends the requests.
    ///   - busyTimeout: How long to retry while the service is busy. Default 5 s.
    init(_ transport: any ServiceTransport, busyTimeout: Duration = .seconds(5)) {
        self.transport = transport
        self.busyTimeout = busyTimeout
    }

    /// - Parameter path: The service's socket.
    init(path: ArgumentBytes, busyTimeout: Duration = .seconds(5)) {
        self.init(SocketTransport(path: path), busyTimeout: busyTimeout)
    }

    /// Returns a client that retries longer while the service is busy, for work that would be expensive to repeat.
    ///
    /// - Parameter body: Called each time the service was busy, before the retry.
    func retryingLonger(onBusy body: @escaping @Sendable () async -> Void) -> ServiceClient {
        var client = self
        (client.busyTimeout, client.onBusy) = (Self.longest, body)
        return client
    }

    /// Sends a GET request and decodes the response.
    ///
    /// - Parameters:
    ///   - extra: Additional time for the response.
    ///   - limit: The maximum time of the whole call. Default: none.
    ///   - busyLimit: How long to retry while the service is busy. Default: the client's limit.
    func get<Message: Decodable>(
        _ target: String,
        extra: Duration = .zero,
        within limit: Duration = ServiceRequest.longestCall,
        busyLimit: Duration? = nil,
        as _: Message.Type
    ) async throws(CommandError) -> Message {
        var request = ServiceRequest(method: "GET", target: target, timeout: Self.timeout + extra)
        request.totalTimeout = limit
        request.isRepeatable = true
        request.busyLimit = busyLimit
        return try await decoded(request)
    }

    /// Sends a GET request and passes the body of the response to a closure as it arrives. Returns when the service
    /// ends the response.
    ///
    /// - Parameter silence: The maximum time without any data.
    func stream(
        _ target: String,
        silence: Duration,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) {
        var request = ServiceRequest(method: "GET", target: target, timeout: silence)
        request.isRepeatable = true
        let response = try await transport.stream(request, to: receive)
        guard (200..<300).contains(response.status) else { throw refusal(response) }
        throw CommandError(
            .unknown,
            "\(transport.name) ended the stream of events",
            hint:
                "run the command again; if the service has restarted, `netwatch queue list` prints what has changed"
        )
    }

    /// Sends a POST request with a message and decodes the response.
    ///
    /// - Parameter isRepeatable: Whether the request may reach the service twice, because the service recognizes a
    ///   second copy.
    func post<Message: Decodable>(
        _ target: String,
        _ message: some Encodable,
        isRepeatable: Bool = false,
        within limit: Duration = Self.longest,
        as _: Message.Type
    ) async throws(CommandError) -> Message {
        var request = ServiceRequest(method: "POST", target: target, timeout: limit)
        do {
            request.body = try ControlMessage.encoder.encode(message)
        } catch {
            throw CommandError(.unknown, "could not encode the request: \(error)")
        }
        request.contentType = "application/json"
        request.isRepeatable = isRepeatable
        return try await decoded(request)
    }

    /// Uploads a piece of a body. The service rejects a second copy of a piece, because its offset is then wrong.
    func patch<Message: Decodable>(
        _ target: String,
        _ bytes: Data,
        as _: Message.Type
    ) async throws(CommandError) -> Message {
        var request = ServiceRequest(method: "PATCH", target: target, timeout: Self.longest)
        request.body = bytes
        request.contentType = "application/octet-stream"
        request.isRepeatable = true
        return try await decoded(request)
    }

    /// Sends a DELETE request and decodes the response.
    ///
    /// - Parameter limit: The maximum time of the whole call. Default: none.
    func delete<Message: Decodable>(
        _ target: String,
        within limit: Duration = ServiceRequest.longestCall,
        as _: Message.Type
    ) async throws(CommandError) -> Message {
        var request = ServiceRequest(method: "DELETE", target: target, timeout: Self.timeout)
        request.totalTimeout = limit
        request.isRepeatable = true
        return try await decoded(request)
    }

    /// How long a change may take by default. It may wait for the disk, and for a large change before it. `netwatch
    /// send` sets its own limit, which depends on the timeouts of the first attempt.
    static let longest: Duration = .seconds(620)

    private func decoded<Message: Decodable>(_ request: ServiceRequest) async throws(CommandError) -> Message
    {
        let response = try await responseWhenNotBusy(to: request)
        guard (200..<300).contains(response.status) else { throw refusal(response) }
        do {
            return try ControlMessage.decoder.decode(Message.self, from: response.body)
        } catch {
            throw CommandError(.unknown, "could not decode the response of \(transport.name): \(error)")
        }
    }

    /// Sends a request, and sends it again while the service is busy. A busy service has done nothing, so that every
    /// request can be repeated.
    private func responseWhenNotBusy(
        to request: ServiceRequest
    ) async throws(CommandError) -> ServiceResponse {
        let deadline = ContinuousClock.now + min(busyTimeout, request.busyLimit ?? busyTimeout)
        while true {
            let response = try await transport.response(to: request)
            guard response.isBusy, let pause = response.retryAfter, .now + pause < deadline else {
                return response
            }
            // The delay is random, so that commands that were refused together do not retry together.
            let delay = pause + .milliseconds(Int64.random(in: 50...300))
            await onBusy?()
            guard (try? await Task.sleep(for: delay)) != nil else { return response }
        }
    }

    private func refusal(_ response: ServiceResponse) -> CommandError {
        let problem = try? ControlMessage.decoder.decode(
            ControlMessage.ProblemDetails.self,
            from: response.body
        )
        let detail = problem.map { Printer.printable($0.detail) }
        if response.isBusy { return .busy(transport.name, detail ?? "HTTP \(response.status)") }
        guard let problem else {
            return CommandError(.unknown, "\(transport.name) responded with HTTP \(response.status)")
        }
        let error = CommandError(problem)
        return problem.code == "not_running" ? error.with(hint: transport.startHint) : error
    }
}

extension ServiceResponse {
    /// Whether the response is 503 with `Retry-After`: the service had no capacity for the request and did nothing.
    fileprivate var isBusy: Bool { status == 503 && retryAfter != nil }
}

extension CommandError {
    init(_ problem: ControlMessage.ProblemDetails) {
        self = Self.meaning(of: problem)
        code = problem.code
        offset = problem.offset
    }

    private static func meaning(of problem: ControlMessage.ProblemDetails) -> CommandError {
        let message = Printer.printable(problem.detail)
        switch problem.code {
        case "not_running":
            return CommandError(.unavailable, message)
        case "too_many_staged_bodies", "too_many_connections":
            return CommandError(.tryAgain, message, hint: "nothing was changed; try again in a few seconds")
        case "quota_exceeded":
            return CommandError(
                .tryAgain,
                message,
                hint: "nothing was changed; try again when requests have ended"
            )
        case "queue_full":
            return CommandError(
                .unknown,
                message,
                hint:
                    "`netwatch queue stats` shows requests, bytes and free space; `queue.limits` in the configuration sets "
                    + "the limits"
            )
        case "unknown_request", "unknown_lane", "refused":
            return CommandError(.no, message)
        case "secret_header":
            return CommandError(
                .usage,
                message,
                hint: "`--queue never` sends the request immediately, without storing it"
            )
        case "encryption_key_missing":
            return CommandError(
                .unknown,
                message,
                hint:
                    "`netwatch serve --encryption-key FILE` starts the service with the key; without the service, "
                    + "give this option to `netwatch queue`"
            )
        case "store_unusable":
            return CommandError(.unusableStore, message).withUnknownOutcome
        case "invalid_import":
            // The argument is valid, but the content of the file is not.
            return CommandError(.unknown, message)
        case "store_failed", "store_replaced", "stopped", "internal_error":
            return CommandError(.unknown, message).withUnknownOutcome
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
        // A path segment that consists only of dots would be removed from the URL (RFC 3986 §5.2.4).
        if self == "." || self == ".." { return replacing(".", with: "%2e") }
        return utf8.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain =
                byte < 0x80 && (character.isLetter || character.isNumber || "-._~".contains(character))
            return isPlain ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}

/// Finds requests by the beginning of their ids. The control API itself only accepts complete ids.
struct IDResolver {
    /// The minimum length of the beginning of an id. A shorter text only matches a complete id, because many ids could
    /// begin with it.
    static let shortestPrefix = 8
    /// The number of ids that a message lists: as many as a person can compare.
    private static let mostListed = 4

    let client: ServiceClient

    /// Returns the complete ids, in the order of the texts.
    ///
    /// - Throws: The error of ``id(meantBy:)`` for the first text that selects no single request.
    func ids(meantBy texts: [String]) async throws(CommandError) -> [String] {
        var ids: [String] = []
        for text in texts { ids.append(try await id(meantBy: text)) }
        return ids
    }

    /// Returns the id that equals the text, or the only id that begins with it.
    ///
    /// - Throws: An error with exit status 1:
    ///   - if the text is not an id, and is shorter than ``shortestPrefix``
    ///   - if no id begins with the text
    ///   - if several ids begin with it; the message lists up to four
    func id(meantBy text: String) async throws(CommandError) -> String {
        guard !text.isEmpty else { throw CommandError(.no, "the id must not be empty") }
        let found = try await client.get("/v1/ids?prefix=\(text.urlEscaped)", as: ControlMessage.IDs.self).ids
        // Ids are sorted, so an id equal to the text comes first.
        if found.first == text { return text }
        let name = Printer.quoted(text)
        guard text.utf8.count >= Self.shortestPrefix else {
            throw CommandError(
                .no,
                "no request has the id \(name); the beginning of an id must have at least "
                    + "\(Self.shortestPrefix) characters"
            )
        }
        guard let id = found.first else {
            throw CommandError(.no, "no request has an id that begins with \(name)")
        }
        guard found.count == 1 else {
            let some = found.prefix(Self.mostListed).map(Printer.quoted).joined(separator: ", ")
            let rest = found.count > Self.mostListed ? ", and more" : ""
            throw CommandError(.no, "several ids begin with \(name): \(some)\(rest)")
        }
        return id
    }
}
