internal import ClientCore
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

/// A server behind a cable, and the way to it, which comes and goes. In namespaces of their own.
final class LawPaths: Sendable {
    let engine: TransferEngine
    let monitor: PathMonitor
    let server: ScriptedServer
    /// The same server by a name, whose path is another watch.
    let named: String
    private let testbed: VethTestbed
    private let way: RouteSwitch
    /// Of a name, so that what a monitor opens for names is open from the start.
    private let watch: PathWatch

    init(_ script: @escaping ScriptedServer.Script) throws {
        testbed = try VethTestbed()
        let (near, far) = (testbed.near, testbed.far)
        try far.ip("addr add \(VethTestbed.remoteAddress)/32 dev lo")
        // What was under way when the way went is sent again soon after it has come back: the kernel's usual 200 ms
        // would be most of a seed's time.
        try near.ip("route replace default via \(VethTestbed.farAddress) rto_min 5ms")
        try far.ip("route replace 192.0.2.0/24 dev far0 src \(VethTestbed.farAddress) rto_min 5ms")
        way = try RouteSwitch(in: near)
        let address = IPAddress(VethTestbed.remoteAddress)
        let resolver = NameResolver { _ in
            address.map { .success([$0]) } ?? .failure(.init(code: EAI_NONAME))
        }
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = near.path
        // A way that is missing for some milliseconds is to be seen missing.
        configuration.settle = .milliseconds(1)
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        self.monitor = monitor
        watch = monitor.watch(.host(try NetworkHost(validating: "watched.test"))) { _ in }
        engine = try TransferEngine(resolver: resolver, networkNamespace: near.path)
        server = try ScriptedServer(address: VethTestbed.remoteAddress, in: far, script)
        named = "http://law.test:\(server.port)"
    }

    /// Ends the server's side of all connections. One whose other side was reset while there was no way does not know.
    func hangUp() { server.hangUp() }

    /// Opens or closes the way to the server.
    func set(isOpen: Bool) {
        do {
            try way.set(isOpen: isOpen)
        } catch {
            ClientVictim.say("the way cannot be changed: \(error)")
        }
    }
}
