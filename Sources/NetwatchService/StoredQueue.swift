internal import CNetwatchLinux
internal import ClientCore
internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import OfflineQueue

/// A queue's directory without a running service. The queue can be read and edited, but nothing is sent.
package struct StoredQueue: Sendable {
    private let queue: OfflineQueue
    private let router: ControlRouter

    /// Opens the directory, which must belong to the effective user of this process. In another user's directory this
    /// process would create files that the service of that user could not use.
    ///
    /// - Throws: ``QueueError``.
    ///
    /// - Parameter encryptionKey: The path of the file with the encryption keys; `nil` for none.
    package static func opening(_ directory: String, encryptionKey: String? = nil) async throws -> StoredQueue
    {
        var configuration = OfflineQueue.Configuration(directory: directory)
        configuration.encryptionKeyFile = encryptionKey
        if encryptionKey != nil { ProcessLimits.forbidCoreDumps() }
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: SessionSender(session: .bare()),
            gate: NoGate()
        )
        return StoredQueue(queue: queue, router: QueueRoutes(queue: queue, isRunning: false).router)
    }

    /// Handles a request as the control API of the service does.
    ///
    /// - Parameter target: The path and query, as in a request line. The response to an invalid target is 400.
    package func respond(
        _ method: String,
        _ target: String,
        body: [UInt8]
    ) async -> (status: Int, body: [UInt8]) {
        guard let parsed = RequestTarget(target) else {
            return Self.values(of: ControlResponse(.malformedTarget))
        }
        let request = ControlRequest(
            method: HTTPMethod(rawValue: method),
            target: parsed,
            body: body,
            peer: PeerCredentials(pid: getpid(), uid: geteuid(), gid: getegid())
        )
        return Self.values(of: await router.respond(to: request))
    }

    private static func values(of response: ControlResponse) -> (status: Int, body: [UInt8]) {
        (Int(response.status.code), response.body)
    }

    /// Imports an export from a file of any length. The route `POST /v1/queue/import` only accepts an export that was
    /// uploaded, and uploads have a maximum length.
    ///
    /// - Parameter keepingSubmitters: Whether the submitters in the export are kept. Otherwise the requests belong to the
    ///   effective user of this process.
    /// - Throws: ``QueueError``.
    package func importRequests(
        from path: String,
        keepingSubmitters: Bool
    ) async throws -> ControlMessage.Imported {
        let submitters = keepingSubmitters ? ImportedSubmitters.original : .user(geteuid())
        return ControlMessage.Imported(try await queue.importRequests(from: path, as: submitters))
    }

    /// Stops the queue and releases the directory.
    package func close() async {
        await queue.stop()
    }
}

/// A gate that reports no state, because nothing is sent.
private struct NoGate: HostGate {
    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        nil
    }
}

/// The process-wide settings that the service changes before it starts.
enum ProcessLimits {
    /// Raises the soft limit of descriptors to the hard limit (`RLIMIT_NOFILE` of getrlimit(2)).
    ///
    /// If a system call filter forbids that, the soft limit stays. In the systemd unit this is harmless, because
    /// `LimitNOFILE=` has already set both limits to the same value.
    ///
    /// - Returns: The number of descriptors that the process may open.
    static func raiseDescriptors() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return defaultDescriptors }
        var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
        if limit.rlim_cur < limit.rlim_max, setrlimit(resource, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// The kernel's default soft limit, for the case that the limit cannot be read.
    private static let defaultDescriptors = 1024

    /// Makes the C library allocate large blocks directly from the kernel and return them as soon as they are freed.
    ///
    /// By default the C library raises the threshold for large blocks, up to 32 MiB, when a large block is freed. It
    /// keeps freed blocks that are smaller than the threshold.
    static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, largeBlockBytes)
    }

    /// Prevents core dumps (`PR_SET_DUMPABLE` of prctl(2)). They would contain the requests in flight as plaintext. The
    /// keys themselves are in memory that is never dumped.
    static func forbidCoreDumps() {
        _ = netwatch_forbid_core_dumps()
    }

    /// The smallest large block, in bytes: the C library's initial threshold. Setting it explicitly disables the
    /// automatic adjustment.
    private static let largeBlockBytes: CInt = 128 * 1024
}
