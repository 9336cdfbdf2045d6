internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchService

/// Talks to the service over its control socket.
struct ServiceClient {
    /// The socket.
    let path: String
    private let session: SessionManager
    private let patience: Duration

    /// - Parameters:
    ///   - path: The socket; `nil` for the usual place.
    ///   - patience: How long the service may be silent before it is given up.
    init(path: String?, patience: Duration = .seconds(10)) {
        self.patience = patience
        self.path = path ?? ServicePaths().socketForCommands
        session = SessionManager(unixSocketPath: self.path)
    }

    /// Asks for something and decodes the answer.
    func get<Answer: Decodable>(_ route: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        try await answer(to: request(.get, route))
    }

    /// Asks for something to be done and decodes the answer.
    func post<Answer: Decodable>(_ route: String, as _: Answer.Type) async throws(CommandError) -> Answer {
        try await answer(to: request(.post, route))
    }

    /// Asks for something to be done with a message and decodes the answer.
    func post<Answer: Decodable>(
        _ route: String,
        _ message: some Encodable,
        as _: Answer.Type
    ) async throws(CommandError) -> Answer {
        var request = request(.post, route)
        do {
            request.httpBody = try ControlMessage.encoder.encode(message)
        } catch {
            throw CommandError(.unknown, "could not encode the request: \(error)")
        }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        // The service answers a send when the first attempt is over, which has limits of its own.
        request.timeoutInterval = 600
        return try await answer(to: request)
    }

    private func request(_ method: HTTPMethod, _ route: String) -> URLRequest {
        // The host is only a name here: the socket decides who answers.
        var request = URLRequest(url: URL(string: "http://netwatch" + route)!)
        request.httpMethod = method.rawValue
        request.timeoutInterval = patience.seconds
        return request
    }

    private func answer<Answer: Decodable>(to request: URLRequest) async throws(CommandError) -> Answer {
        let response = await session.request(request).response()
        guard let status = response.response?.statusCode, response.error == nil else {
            throw unreachable(response.error)
        }
        let data = response.data ?? Data()
        guard (200..<300).contains(status) else { throw refusal(status, data) }
        do {
            return try ControlMessage.decoder.decode(Answer.self, from: data)
        } catch {
            throw CommandError(
                .unknown,
                "the service at `\(path)` gave an answer that makes no sense: \(error)"
            )
        }
    }

    private func unreachable(_ error: (any Error)?) -> CommandError {
        let hint = "is it running? `netwatch serve` starts it; `--socket` says where it listens"
        switch error?.transferFailure?.osErrno {
        case ENOENT, ECONNREFUSED:
            return CommandError(.unavailable, "no service listens at `\(path)`", hint: hint)
        case EACCES, EPERM:
            return CommandError(
                .noPermission,
                "this user may not talk to the service at `\(path)`",
                hint: "run as root, or as the user the service runs as"
            )
        default:
            let words = error?.transferFailure?.message ?? error.map { "\($0)" } ?? "no answer"
            return CommandError(.unknown, "could not talk to the service at `\(path)`: \(words)", hint: hint)
        }
    }

    private func refusal(_ status: Int, _ data: Data) -> CommandError {
        guard let problem = try? ControlMessage.decoder.decode(ControlMessage.ProblemDetails.self, from: data)
        else {
            return CommandError(.unknown, "the service at `\(path)` answered with HTTP \(status)")
        }
        // What the caller gave is wrong, or the service could not do it.
        return CommandError(status == 400 || status == 413 ? .usage : .unknown, problem.detail)
    }
}
