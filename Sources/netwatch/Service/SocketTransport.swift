internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc

/// Sends requests to the service over its control socket.
///
/// All requests of a command use one keep-alive connection, including those that must not arrive twice, because libcurl
/// is not allowed to send these again. A connection that the service closed while idle is detected before use and
/// replaced.
struct SocketTransport: ServiceTransport {
    let path: String
    private let session: SessionManager

    /// Responses have no size limit here, because the service limits its pages.
    private static let longestResponse = 1 << 40
    /// Limits the total time of a response that arrives slowly. ``ServiceRequest/timeout`` limits the time without
    /// any data.
    private static let longestTransfer: Duration = .seconds(86_400)

    var name: String { "the service at `\(path)`" }

    init(path: String) {
        self.path = path
        session = SessionManager(unixSocketPath: path)
    }

    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse {
        // The host has no effect, because the connection uses the socket.
        var urlRequest = URLRequest(url: URL(string: "http://netwatch" + request.target)!)
        urlRequest.httpMethod = request.method
        urlRequest.timeoutInterval = request.timeout.seconds
        urlRequest.httpBody = request.body
        if let type = request.contentType { urlRequest.setValue(type, forHTTPHeaderField: "Content-Type") }
        let transfer = await session.transfer(
            urlRequest,
            maximumResponseBytes: Self.longestResponse,
            totalTimeout: Self.longestTransfer,
            allowsConnectionReuse: true,
            allowsResending: request.isRepeatable
        ).response()
        guard let head = transfer.response, transfer.error == nil else {
            if transfer.error?.transferFailure?.isBacklogFull == true { return Self.full }
            throw unreachable(transfer.error)
        }
        let wait = head.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init)
        return ServiceResponse(
            status: head.statusCode,
            body: transfer.data ?? Data(),
            retryAfter: wait.map { .seconds(max(0, $0)) }
        )
    }

    /// The response if connect(2) fails with EAGAIN, because the service's backlog is full: the same as from a busy
    /// service.
    private static let full = ServiceResponse(
        status: 503,
        body: Data(
            #"{"code":"busy","detail":"it does not accept more connections now","status":503}"#.utf8
        ),
        retryAfter: .zero
    )

    private func unreachable(_ error: (any Error)?) -> CommandError {
        let failure = error?.transferFailure
        switch failure?.osErrno {
        case ENOENT, ECONNREFUSED: return .notRunning(path)
        case EACCES, EPERM: return .notPermitted(path)
        default:
            let reason = failure?.message ?? error.map { "\($0)" } ?? "no response"
            if failure?.isLocalShortage == true { return localShortage(reason) }
            return CommandError(
                .unknown,
                "\(name) did not respond: \(reason)",
                hint: failure?.code == Self.timeoutCode ? Self.slowness : nil
            ).withUnknownOutcome
        }
    }

    /// `CURLE_OPERATION_TIMEDOUT`.
    private static let timeoutCode: Int32 = 28
    private static let slowness =
        "the service may be short of descriptors (see its log), or busy with a large change"

    /// No request was sent, and the service is not the cause.
    private func localShortage(_ reason: String) -> CommandError {
        CommandError(
            .unknown,
            "could not connect to \(name), because this command is short of descriptors, memory or threads: \(reason)",
            hint: "nothing was changed; `ulimit -n` shows the limit of descriptors"
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
            "no service listens on `\(path)`",
            hint: "`netwatch serve` starts the service; `--socket` selects another socket"
        )
    }

    static func notPermitted(_ path: String) -> CommandError {
        CommandError(
            .noPermission,
            "this user may not connect to the service at `\(path)`",
            hint: "run the command as root, or as the user of the service"
        )
    }

    /// - Parameters:
    ///   - name: The name of the busy peer.
    ///   - detail: The work that it has no capacity for.
    static func busy(_ name: String, _ detail: String) -> CommandError {
        CommandError(
            .tryAgain,
            "\(name) is busy: \(detail)",
            hint: "nothing was changed; try again in a few seconds"
        )
    }
}
