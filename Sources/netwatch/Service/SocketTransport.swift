internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import Synchronization

/// Sends requests to the service over its control socket.
///
/// All requests of a command share one keep-alive connection, even those that must not arrive twice: for these, libcurl
/// may not send the request again. A connection that the service closed while it was idle is detected before use and
/// replaced.
struct SocketTransport: ServiceTransport {
    let path: String
    private let session: SessionManager

    /// Practically no limit, because the service limits its responses itself.
    private static let longestResponse = 1 << 40
    /// The maximum total time of a stream: ten years, practically no limit. The service sends keep-alives.
    private static let longestStream: Duration = .seconds(10 * 366 * 86_400)

    var name: String { "the service at `\(path)`" }

    init(path: String) {
        self.path = path
        session = SessionManager(unixSocketPath: path)
    }

    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse {
        // `ServiceRequest.timeout` limits the time without any data.
        let transfer = await transfer(request, totalTimeout: ServiceRequest.longestCall).response()
        guard transfer.response != nil, transfer.error == nil else { return try failure(of: transfer) }
        return ServiceResponse(transfer, body: transfer.data ?? Data())
    }

    func stream(
        _ request: ServiceRequest,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) -> ServiceResponse {
        let start = StreamStart()
        let transfer = await transfer(request, totalTimeout: Self.longestStream)
            .stream { bytes in
                start.add(bytes)
                receive(bytes)
            }
            .response()
        // If the stream began, the service has ended it, or was killed.
        guard transfer.response != nil else { return try failure(of: transfer) }
        return ServiceResponse(transfer, body: start.bytes)
    }

    private func transfer(_ request: ServiceRequest, totalTimeout: Duration) -> DataRequest {
        // The host name has no effect, because the connection uses the socket.
        var urlRequest = URLRequest(url: URL(string: "http://netwatch" + request.target)!)
        urlRequest.httpMethod = request.method
        urlRequest.timeoutInterval = request.timeout.seconds
        urlRequest.httpBody = request.body
        if let type = request.contentType { urlRequest.setValue(type, forHTTPHeaderField: "Content-Type") }
        var policy = TransferPolicy.singleTransfer(
            maximumResponseBytes: Self.longestResponse,
            totalTimeout: totalTimeout,
            allowsConnectionReuse: true
        )
        policy.allowsResending = request.isRepeatable
        return session.transfer(urlRequest, policy: policy)
    }

    /// Returns the response of a busy service if the service's backlog is full. Throws any other failure.
    private func failure(of transfer: DefaultDataResponse) throws(CommandError) -> ServiceResponse {
        if transfer.error?.transferFailure?.isBacklogFull == true { return Self.full }
        throw unreachable(transfer.error)
    }

    /// The response that is returned if the service's backlog is full and connect(2) fails with EAGAIN. It equals the
    /// response of a busy service.
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

    /// Returns the error for a shortage in this process. No request was sent, and the service is not the cause.
    private func localShortage(_ reason: String) -> CommandError {
        CommandError(
            .unknown,
            "could not connect to \(name), because this command is short of descriptors, memory or threads: \(reason)",
            hint: "nothing was changed; `ulimit -n` shows the limit of descriptors"
        )
    }
}

extension ServiceResponse {
    fileprivate init(_ transfer: DefaultDataResponse, body: Data) {
        let wait = transfer.response?.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init)
        self.init(
            status: transfer.response?.statusCode ?? 0,
            body: body,
            retryAfter: wait.map { .seconds(max(0, $0)) }
        )
    }
}

/// The first bytes of a stream, which describe the problem if the service refuses the request.
private final class StreamStart: Sendable {
    private static let limit = 64 << 10
    private let received = Mutex(Data())

    var bytes: Data { received.withLock { $0 } }

    func add(_ bytes: Data) {
        received.withLock { $0 += bytes.prefix(Self.limit - $0.count) }
    }
}

extension TransferFailure {
    /// Whether connect(2) failed because more connections wait than the service accepts. Before that phase, EAGAIN
    /// means that no thread could be started.
    fileprivate var isBacklogFull: Bool { osErrno == EAGAIN && phase == .connect }
}

/// The three errors after which the service has done nothing for a command. Each has its own exit status.
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
            hint: "run the command as root or as the user of the service, or add a group of this user to "
                + "`access.submit-groups` or `access.read-groups` in the configuration, and reload the service"
        )
    }

    /// - Parameters:
    ///   - name: The name of the service or the queue.
    ///   - detail: What is busy.
    static func busy(_ name: String, _ detail: String) -> CommandError {
        CommandError(
            .tryAgain,
            "\(name) is busy: \(detail)",
            hint: "nothing was changed; try again in a few seconds"
        )
    }
}
