internal import ClientCore
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

/// A server in another network namespace, behind a virtual cable, and the route to it, which is removed and restored.
final class CompletionPaths: Sendable {
    let engine: TransferEngine
    let monitor: PathMonitor
    let server: ScriptedServer
    /// The URL of the same server by its name. The name has its own path watch.
    let named: String
    private let testbed: VethTestbed
    private let route: RouteSwitch
    /// A watch of a name. It makes the monitor open the descriptors that it needs for names before they are counted.
    private let watch: PathWatch

    init(_ script: @escaping ScriptedServer.Script) throws {
        testbed = try VethTestbed()
        let (near, far) = (testbed.near, testbed.far)
        try far.ip("addr add \(VethTestbed.remoteAddress)/32 dev lo")
        // Shortens the minimum TCP retransmission timeout, so that data that was lost with the route is sent again soon
        // after the route is back. The kernel's usual minimum of 200 ms would be most of a seed's time.
        try near.ip("route replace default via \(VethTestbed.farAddress) rto_min 5ms")
        try far.ip("route replace 192.0.2.0/24 dev far0 src \(VethTestbed.farAddress) rto_min 5ms")
        route = try RouteSwitch(in: near)
        let address = IPAddress(VethTestbed.remoteAddress)
        let resolver = NameResolver { _ in
            address.map { .success([$0]) } ?? .failure(.init(code: EAI_NONAME))
        }
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = near.path
        // Makes the monitor report a route that is missing for only a few milliseconds.
        configuration.settle = .milliseconds(1)
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        self.monitor = monitor
        watch = monitor.watch(.host(try NetworkHost(validating: "watched.test"))) { _ in }
        engine = try TransferEngine(resolver: resolver, networkNamespace: near.path)
        server = try ScriptedServer(address: VethTestbed.remoteAddress, in: far, script)
        named = "http://completion.test:\(server.port)"
    }

    /// Ends the server's side of all connections. The server does not notice a reset that the client sent while there
    /// was no route.
    func hangUp() { server.hangUp() }

    /// Adds or removes the route to the server.
    func set(isOpen: Bool) {
        do {
            try route.set(isOpen: isOpen)
        } catch {
            ClientTestProcess.say("the route cannot be changed: \(error)")
        }
    }
}
