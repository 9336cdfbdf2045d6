internal import ClientCore
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

/// A server behind a cable, with a route that is removed and restored. Uses separate network namespaces.
final class CompletionPaths: Sendable {
    let engine: TransferEngine
    let monitor: PathMonitor
    let server: ScriptedServer
    /// The URL of the same server by name. Its path is a separate watch.
    let named: String
    private let testbed: VethTestbed
    private let route: RouteSwitch
    /// A watch of a name, so that the descriptors that a monitor needs for names are open from the start.
    private let watch: PathWatch

    init(_ script: @escaping ScriptedServer.Script) throws {
        testbed = try VethTestbed()
        let (near, far) = (testbed.near, testbed.far)
        try far.ip("addr add \(VethTestbed.remoteAddress)/32 dev lo")
        // Data in flight when the route was removed must be sent again soon after the route is back. The kernel's
        // usual minimum of 200 ms would be most of a seed's time.
        try near.ip("route replace default via \(VethTestbed.farAddress) rto_min 5ms")
        try far.ip("route replace 192.0.2.0/24 dev far0 src \(VethTestbed.farAddress) rto_min 5ms")
        route = try RouteSwitch(in: near)
        let address = IPAddress(VethTestbed.remoteAddress)
        let resolver = NameResolver { _ in
            address.map { .success([$0]) } ?? .failure(.init(code: EAI_NONAME))
        }
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = near.path
        // A route that is missing for a few milliseconds must be reported as missing.
        configuration.settle = .milliseconds(1)
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        self.monitor = monitor
        watch = monitor.watch(.host(try NetworkHost(validating: "watched.test"))) { _ in }
        engine = try TransferEngine(resolver: resolver, networkNamespace: near.path)
        server = try ScriptedServer(address: VethTestbed.remoteAddress, in: far, script)
        named = "http://completion.test:\(server.port)"
    }

    /// Ends the server's side of all connections. The server does not notice when the other side was reset without a
    /// route.
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
