internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService

/// A request to the control API.
struct ServiceRequest: Sendable {
    /// The maximum time of a call that reads or writes the whole store, perhaps gigabytes on a slow SD card: 24 hours.
    static let longestCall: Duration = .seconds(86_400)

    let method: String
    /// The path and query.
    let target: String
    var body: Data?
    var contentType: String?
    /// The maximum time without any data from the service. May be exceeded by up to 2 s.
    var timeout: Duration
    /// The maximum time of the whole call.
    var totalTimeout: Duration = ServiceRequest.longestCall
    /// Whether the request may reach the service twice, because it changes nothing or the service recognizes a second
    /// copy.
    var isRepeatable = false
    /// How long to retry while the service is busy; `nil` for the default of the client.
    var busyLimit: Duration?
}

/// A response of the control API, including error responses.
struct ServiceResponse: Sendable {
    let status: Int
    let body: Data
    /// How long to wait before the next try, if the service states it (`Retry-After`).
    var retryAfter: Duration?
}

/// Sends requests to the control API, either of the service or of this process.
protocol ServiceTransport: Sendable {
    /// The name of the service or the queue, for messages.
    var name: String { get }

    /// How to start the service, for requests that only the service can handle.
    var startHint: String { get }

    /// - Throws: The reason why there is no response. An error response does not throw.
    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse

    /// Sends a request whose response does not end by itself, and passes its body to a closure as it arrives.
    ///
    /// - Returns: The response with the first 64 KiB of its body, when the service has ended it.
    /// - Throws: The reason why there is no response.
    func stream(
        _ request: ServiceRequest,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) -> ServiceResponse
}

extension ServiceTransport {
    /// Without the service nothing changes the queue, so there are no events to stream.
    func stream(
        _ request: ServiceRequest,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) -> ServiceResponse {
        try await response(to: request)
    }
}

/// Sends requests to the service over its control socket.
///
/// All requests of a command share one keep-alive connection, even those that must not arrive twice: for these, libcurl
/// may not send the request again. A connection that the service closed while it was idle is detected before use and
/// replaced.
struct SocketTransport: ServiceTransport {
    let path: ArgumentBytes
    private let session: SessionManager

    /// Practically no limit, because the service limits its responses itself.
    private static let longestResponse = 1 << 40
    /// The maximum total time of a stream: ten years, practically no limit. The service sends keep-alives.
    private static let longestStream: Duration = .seconds(10 * 366 * 86_400)

    var name: String { "the service at `\(path)`" }
    var startHint: String { SystemUnit.startHint(socket: path) }

    init(path: ArgumentBytes) {
        self.path = path
        session = SessionManager(exactUnixSocketPath: path.exactText)
    }

    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse {
        let isShort = request.timeout <= Self.checkPause + Self.checkTimeout
        return try await (isShort ? call(request) : callWithChecks(request)).get()
    }

    private func call(_ request: ServiceRequest) async -> Result<ServiceResponse, CommandError> {
        let transfer = await transfer(request, totalTimeout: request.totalTimeout).response()
        guard transfer.response != nil, transfer.error == nil else { return failure(of: transfer) }
        return .success(ServiceResponse(transfer, body: transfer.data ?? Data()))
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
        guard transfer.response != nil else { return try failure(of: transfer).get() }
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

    /// Returns the response of a busy service if the service's backlog is full, otherwise the error.
    private func failure(of transfer: DefaultDataResponse) -> Result<ServiceResponse, CommandError> {
        if transfer.error?.transferFailure?.isBacklogFull == true { return .success(Self.full) }
        return .failure(unreachable(transfer.error))
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
        if let unusable = CommandError.unusableTransport { return unusable }
        let failure = error?.transferFailure
        switch failure?.osErrno {
        case ENOENT, ECONNREFUSED: return .notRunning(path)
        case EACCES, EPERM: return .notPermitted(path)
        default:
            let reason = failure?.message ?? error.map { "\($0)" } ?? "no response"
            if failure?.isLocalShortage == true { return localShortage(reason) }
            return noResponse(reason, hint: failure?.isTimeout == true ? Self.slowness : nil)
        }
    }

    private func noResponse(_ reason: String, hint: String?) -> CommandError {
        CommandError(.unknown, "\(name) did not respond: \(reason)", hint: hint).withUnknownOutcome
    }

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

/// Checks of the service during a call that may take long, such as a call that returns after an attempt. Without them,
/// a command would wait for a service that hangs as long as for a service that works.
extension SocketTransport {
    /// The time before the first check, and between the response to a check and the next check.
    private static let checkPause: Duration = .seconds(5)
    /// How long the service may take to respond to a check.
    private static let checkTimeout: Duration = .seconds(5)
    /// The service responds to this request without using its store, which may be busy with a large change. Any
    /// response shows that the service works, even a refusal.
    private static let check = ServiceRequest(method: "GET", target: "/v1/names", timeout: checkTimeout)

    /// Makes a call, and ends it as soon as the service does not respond to a check.
    private func callWithChecks(_ request: ServiceRequest) async -> Result<ServiceResponse, CommandError> {
        await withTaskGroup(of: Result<ServiceResponse, CommandError>?.self) { group in
            group.addTask { await call(request) }
            group.addTask { await failedCheck().map { .failure($0) } }
            for await case let result? in group {
                group.cancelAll()
                return result
            }
            return .failure(unreachable(nil))
        }
    }

    /// Checks the service repeatedly. Returns the error when it does not respond; `nil` when the task is cancelled.
    private func failedCheck() async -> CommandError? {
        while (try? await Task.sleep(for: Self.checkPause)) != nil {
            let check = await transfer(Self.check, totalTimeout: Self.checkTimeout).response()
            guard check.error?.transferFailure?.isTimeout == true else { continue }
            let silence = DurationText.format(Self.checkPause + Self.checkTimeout)
            return noResponse("it has sent nothing for \(silence)", hint: Self.slowness)
        }
        return nil
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
    private let received = Lock(Data())

    var bytes: Data { received.withLock { $0 } }

    func add(_ bytes: Data) {
        received.withLock { $0 += bytes.prefix(Self.limit - $0.count) }
    }
}

extension TransferFailure {
    /// Whether connect(2) failed because more connections wait than the service accepts. Before that phase, EAGAIN
    /// means that no thread could be started.
    fileprivate var isBacklogFull: Bool { osErrno == EAGAIN && phase == .connect }

    /// Whether the code is `CURLE_OPERATION_TIMEDOUT`.
    fileprivate var isTimeout: Bool { code == 28 }
}

/// The three errors after which the service has done nothing for a command. Each has its own exit status.
extension CommandError {
    static func notRunning(_ path: ArgumentBytes) -> CommandError {
        CommandError(
            .unavailable,
            "no service listens on `\(path)`",
            hint: "\(SystemUnit.startHint(socket: path)); `--socket` selects another socket"
        )
    }

    static func notPermitted(_ path: ArgumentBytes) -> CommandError {
        CommandError(
            .noPermission,
            "this user may not connect to the service at `\(path)`",
            hint: "\(remedy(at: path)); root and the user of the service always have access"
        )
    }

    /// Returns how this user gets access to a service. The file of the socket says which groups have access.
    private static func remedy(at path: ArgumentBytes) -> String {
        var policy = AccessPolicy()
        if case .groups(let groups) = SocketAdmission(of: path.bytes) { policy.readGroups = groups }
        return policy.remedy(for: .none)
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

/// Handles requests in this process, with the service's own routes on the queue's directory. Nothing is sent to
/// servers.
struct StoreTransport: ServiceTransport {
    let directory: String
    let queue: StoredQueue

    var name: String { "the queue in `\(directory)`" }
    var startHint: String { SystemUnit.startHint(stateDirectory: directory) }

    func response(to request: ServiceRequest) async -> ServiceResponse {
        let response = await queue.respond(
            request.method,
            request.target,
            body: request.body.map(Array.init) ?? []
        )
        return ServiceResponse(status: response.status, body: Data(response.body))
    }
}
