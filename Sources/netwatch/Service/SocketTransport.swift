internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc

/// The service, over its control socket.
struct SocketTransport: ControlTransport {
    let path: String
    private let session: SessionManager

    var name: String { "the service at `\(path)`" }

    init(path: String) {
        self.path = path
        session = SessionManager(unixSocketPath: path)
    }

    func answer(to exchange: ControlExchange) async throws(CommandError) -> (status: Int, body: Data) {
        // The host is only a name here: the socket decides who answers.
        var request = URLRequest(url: URL(string: "http://netwatch" + exchange.target)!)
        request.httpMethod = exchange.method
        request.timeoutInterval = exchange.patience.seconds
        request.httpBody = exchange.body
        if let type = exchange.contentType { request.setValue(type, forHTTPHeaderField: "Content-Type") }
        let response = await session.request(request).response()
        guard let status = response.response?.statusCode, response.error == nil else {
            throw unreachable(response.error)
        }
        return (status, response.data ?? Data())
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
                .leavingDoubt
        }
    }
}
