internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

@testable internal import ClientCore

/// A session in a network namespace, and a server in another one, at the other end of a virtual cable. The session's
/// network can be disconnected.
struct OfflineTestbed {
    let testbed: VethTestbed
    let monitor: PathMonitor
    let engine: TransferEngine
    let session: SessionManager

    /// The server's address, which is behind the default route.
    static let host = VethTestbed.remoteAddress

    /// - Parameters:
    ///   - isConnected: Whether there is a default route initially.
    ///   - settle: How long the monitor delays the report of a lost path.
    ///   - resolver: The resolver for all names. By default, no name resolves.
    init(
        isConnected: Bool = false,
        settle: Duration = .milliseconds(30),
        resolver: NameResolver = NameResolver { _ in .failure(.init(code: EAI_AGAIN)) }
    ) throws {
        testbed = try VethTestbed()
        try testbed.far.ip("addr add \(Self.host)/32 dev lo")
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        configuration.settle = settle
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        self.monitor = monitor
        engine = try TransferEngine(resolver: resolver, networkNamespace: testbed.near.path)
        session = SessionManager(engine: engine, monitor: monitor)
        if !isConnected { try disconnect() }
    }

    func server(_ script: @escaping ScriptedServer.Script = { _ in .respond("ok") }) throws
        -> ScriptedServer
    {
        try ScriptedServer(address: Self.host, in: testbed.far, script)
    }

    /// Waits until the session knows the path of a connection. Only then can the session notice that the path is lost.
    func watchesPath() async throws {
        try await poll { !session.context.connections.generations.isEmpty }
    }

    func disconnect() throws {
        try testbed.near.ip("route del default", "-6 route del default")
    }

    func connect() throws {
        try testbed.addDefaultRoutes()
    }
}

extension PathMonitor {
    /// Creates a monitor that watches a namespace. Its configuration is otherwise the default.
    convenience init(of namespace: NetworkNamespace) {
        var configuration = Configuration()
        configuration.networkNamespace = namespace.path
        self.init(configuration: configuration)
    }
}
