internal import ClientCore
internal import Glibc
internal import NIOHTTP1
internal import OfflineQueue

/// A queue's directory without a service: it can be looked at and edited, and nothing is sent.
package struct StoredQueue: Sendable {
    private let queue: OfflineQueue
    private let router: ControlRouter

    /// Opens the directory, which has to belong to this process's effective user: files that another user made
    /// there could not be used by the service any more.
    ///
    /// - Throws: ``QueueError``.
    package static func opening(_ directory: String) async throws -> StoredQueue {
        let queue = try await OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory),
            sender: SessionSender(session: .bare()),
            gate: NoGate()
        )
        return StoredQueue(queue: queue, router: QueueRoutes(queue: queue, isRunning: false).router)
    }

    /// Answers as the service's control API does.
    ///
    /// - Parameter target: The path with its query, as in a request line; what is none is answered with 400.
    package func respond(
        _ method: String,
        _ target: String,
        body: [UInt8]
    ) async -> (status: Int, body: [UInt8]) {
        guard let parsed = RequestTarget(target) else {
            return Self.answer(ControlResponse(.malformedTarget))
        }
        let request = ControlRequest(
            method: HTTPMethod(rawValue: method),
            target: parsed,
            body: body,
            peer: PeerCredentials(pid: getpid(), uid: geteuid(), gid: getegid())
        )
        return Self.answer(await router.respond(to: request))
    }

    private static func answer(_ response: ControlResponse) -> (status: Int, body: [UInt8]) {
        (Int(response.status.code), response.body)
    }

    /// Brings in an export from a file, however long it is; the routes take what can be handed over in pieces.
    ///
    /// - Throws: ``QueueError``.
    package func importRequests(from path: String) async throws -> ControlMessage.Imported {
        ControlMessage.Imported(try await queue.importRequests(from: path))
    }

    /// Gives the directory up.
    package func close() async {
        await queue.stop()
    }
}

/// Nothing is sent, so nobody asks for the way.
private struct NoGate: HostGate {
    func watch(host: String) -> AsyncStream<GateState> {
        AsyncStream { $0.finish() }
    }
}
