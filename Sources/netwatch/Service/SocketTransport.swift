internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc

/// Sends requests to the service over its control socket.
///
/// All requests of a command use one keep-alive connection, including those that must not arrive twice, because libcurl
/// is not allowed to send these again. A connection that the service closed while idle is detected before use and
/// replaced.
struct SocketTransport: ControlTransport {
    let path: String
    private let session: SessionManager

    /// Responses have no size limit here, because the service limits its pages.
    private static let longestAnswer = 1 << 40
    /// Limits the total time of a response that arrives slowly. ``ControlExchange/patience`` limits the time without
    /// any data.
    private static let longestTransfer: Duration = .seconds(86_400)

    var name: String { "the service at `\(path)`" }

    init(path: String) {
        self.path = path
        session = SessionManager(unixSocketPath: path)
    }

    func answer(to exchange: ControlExchange) async throws(CommandError) -> ControlAnswer {
        // The host has no effect, because the connection uses the socket.
        var request = URLRequest(url: URL(string: "http://netwatch" + exchange.target)!)
        request.httpMethod = exchange.method
        request.timeoutInterval = exchange.patience.seconds
        request.httpBody = exchange.body
        if let type = exchange.contentType { request.setValue(type, forHTTPHeaderField: "Content-Type") }
        let response = await session.transfer(
            request,
            maximumResponseBytes: Self.longestAnswer,
            totalTimeout: Self.longestTransfer,
            allowsConnectionReuse: true,
            allowsResending: exchange.isRepeatable
        ).response()
        guard let head = response.response, response.error == nil else {
            if response.error?.transferFailure?.isBacklogFull == true { return Self.full }
            throw unreachable(response.error)
        }
        let wait = head.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init)
        return ControlAnswer(
            status: head.statusCode,
            body: response.data ?? Data(),
            retryAfter: wait.map { .seconds(max(0, $0)) }
        )
    }

    /// What stands for an answer when connect(2) fails with EAGAIN: more connections wait than the service accepts. It is as
    /// busy as one that says so.
    private static let full = ControlAnswer(
        status: 503,
        body: Data(
            #"{"code":"busy","detail":"it does not accept more connections for now","status":503}"#.utf8
        ),
        retryAfter: .zero
    )

    private func unreachable(_ error: (any Error)?) -> CommandError {
        let failure = error?.transferFailure
        switch failure?.osErrno {
        case ENOENT, ECONNREFUSED: return .notRunning(path)
        case EACCES, EPERM: return .notPermitted(path)
        default:
            let words = failure?.message ?? error.map { "\($0)" } ?? "no answer"
            if failure?.isLocalShortage == true { return short(words) }
            return CommandError(
                .unknown,
                "\(name) did not answer: \(words)",
                hint: failure?.code == Self.timeoutCode ? Self.slowness : nil
            ).leavingDoubt
        }
    }

    /// `CURLE_OPERATION_TIMEDOUT`.
    private static let timeoutCode: Int32 = 28
    private static let slowness =
        "its log says whether it is short of descriptors; a change waits for a large one that is being written"

    /// No request was sent, and the service is not the cause.
    private func short(_ words: String) -> CommandError {
        CommandError(
            .unknown,
            "this command cannot connect to \(name), because it is short of descriptors, memory or threads: \(words)",
            hint: "nothing was changed; `ulimit -n` shows how many descriptors it may open"
        )
    }
}

extension TransferFailure {
    /// Whether connect(2) failed because more connections wait than the service accepts. Before that phase, EAGAIN
    /// means that no thread could be started.
    fileprivate var isBacklogFull: Bool { osErrno == EAGAIN && phase == .connect }
}

/// The three errors of a service that does nothing for a command. Each has its own exit status.
extension CommandError {
    static func notRunning(_ path: String) -> CommandError {
        CommandError(
            .unavailable,
            "no service listens at `\(path)`",
            hint: "is it running? `netwatch serve` starts it; `--socket` says where it listens"
        )
    }

    static func notPermitted(_ path: String) -> CommandError {
        CommandError(
            .noPermission,
            "this user may not talk to the service at `\(path)`",
            hint: "run as root, or as the user the service runs as"
        )
    }

    /// - Parameters:
    ///   - name: The name of the busy peer.
    ///   - detail: The work that it has no capacity for.
    static func busy(_ name: String, _ detail: String) -> CommandError {
        CommandError(
            .tryAgain,
            "\(name) is busy: \(detail)",
            hint: "it is running, and nothing was changed: try again in a few seconds"
        )
    }
}
