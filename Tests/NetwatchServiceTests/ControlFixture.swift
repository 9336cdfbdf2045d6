internal import Foundation
internal import Glibc
internal import Logging
internal import NIOHTTP1
internal import NetwatchService
internal import NetwatchTestSupport

/// A control server with its own socket path and with routes that return what they received.
final class ControlFixture: Sendable {
    let directory: ScratchDirectory
    let server: ControlServer
    let gate = HandlerGate()
    /// The messages that the server has logged.
    let log = Recorder<String>()

    let path: String

    init(
        directory: ScratchDirectory? = nil,
        path: String? = nil,
        inheriting inherited: CInt? = nil,
        _ adjust: (inout ControlServer.Limits) -> Void = { _ in },
        prepare: @escaping @Sendable () -> Void = {}
    ) throws {
        let directory = try directory ?? ScratchDirectory()
        self.directory = directory
        var limits = ControlServer.Limits()
        // On a busy machine, a client may take longer than the defaults.
        (limits.headerDeadline, limits.lingerDeadline) = (.seconds(60), .seconds(30))
        adjust(&limits)
        self.path = path ?? directory.file("control.sock")
        server = try ControlServer(
            path: self.path,
            router: Self.router(gate),
            limits: limits,
            logger: .recording(log),
            inherited: inherited,
            prepare: { () throws(ControlSocketError) in prepare() }
        )
    }

    private static func router(_ gate: HandlerGate) -> ControlRouter {
        ControlRouter([
            .init(.GET, "/hello", access: .none) { _ in
                ControlResponse(status: .ok, body: Array("hello".utf8))
            },
            .init(.POST, "/echo", access: .none) { ControlResponse(status: .ok, body: $0.body) },
            .init(.GET, "/query", access: .none) { request in
                .json(request.query.map { "\($0.name)=\($0.value ?? "nil")" })
            },
            .init(.GET, "/peer", access: .none) { request in
                .json(request.peer.map { [Int($0.pid), Int($0.uid), Int($0.gid)] })
            },
            .init(.GET, "/large", access: .none) { _ in
                ControlResponse(status: .ok, body: Array(repeating: 120, count: 8 << 20))
            },
            .init(.GET, "/gate", access: .none, classify: { _ in .wait }) { _ in await pass(gate) },
            .init(.POST, "/gate", access: .none, classify: { _ in .wait }) { _ in await pass(gate) },
        ])
    }

    /// Waits at the gate, even after a cancellation.
    private static func pass(_ gate: HandlerGate) async -> ControlResponse {
        await withTaskCancellationHandler {
            await gate.pass()
        } onCancel: {
            Task { await gate.noteCancellation() }
        }
        return ControlResponse(status: .ok, body: Array("passed".utf8))
    }

    func client() throws -> RawClient {
        try RawClient(path)
    }
}

/// A gate that suspends handlers until it is opened. The test can wait until handlers have reached it.
actor HandlerGate {
    private var isOpen = false
    private var standing: [CheckedContinuation<Void, Never>] = []
    private var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    private var isCancellationSeen = false
    private var cancellationWatchers: [CheckedContinuation<Void, Never>] = []

    func pass() async {
        guard !isOpen else { return }
        await withCheckedContinuation { continuation in
            standing.append(continuation)
            for watcher in watchers where watcher.count <= standing.count { watcher.continuation.resume() }
            watchers.removeAll { $0.count <= standing.count }
        }
    }

    /// Returns when at least `count` handlers are suspended at the gate.
    func isReached(by count: Int = 1) async {
        guard standing.count < count else { return }
        await withCheckedContinuation { watchers.append((count, $0)) }
    }

    func noteCancellation() {
        isCancellationSeen = true
        for watcher in cancellationWatchers { watcher.resume() }
        cancellationWatchers = []
    }

    /// Returns when a handler that was suspended at the gate has been cancelled.
    func isCancelled() async {
        guard !isCancellationSeen else { return }
        await withCheckedContinuation { cancellationWatchers.append($0) }
    }

    func open() {
        isOpen = true
        for continuation in standing { continuation.resume() }
        standing = []
    }
}

extension RawResponse {
    /// The `code` of a problem response, or `nil` if the response is not a well-formed problem.
    var problemCode: String? {
        guard headers["content-type"] == "application/problem+json",
            let object = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any],
            object["status"] as? Int == status, object["type"] is String,
            object["title"] is String, object["detail"] is String
        else { return nil }
        return object["code"] as? String
    }
}
