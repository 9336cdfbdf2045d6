internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Monitors that use a netlink socket of a more privileged process.
@Suite(.needsNetworkNamespaces)
struct InheritedSocketTests {
    /// Opens a socket like systemd with `ListenNetlink=`: already bound, and with a large receive buffer.
    private func open(_ namespace: NetworkNamespace, protocolNumber: CInt = 0) -> FileDescriptor {
        FileDescriptor(
            owning: namespace.run {
                let descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue), protocolNumber)
                var size: CInt = 16 << 20
                // 33 is SO_RCVBUFFORCE. It fails in a user namespace, where the kernel limits the buffer to
                // `net.core.rmem_max`.
                if setsockopt(descriptor, SOL_SOCKET, 33, &size, 4) != 0 {
                    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
                }
                return descriptor
            }
        )
    }

    private static func bufferSize(_ descriptor: CInt) -> CInt {
        var size: CInt = 0
        var length = socklen_t(4)
        getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, &length)
        return size
    }

    @Test func `an inherited socket is used with its own buffer size`() async throws {
        let testbed = try VethTestbed()
        let inherited = open(testbed.near)
        let size = Self.bufferSize(inherited.rawValue)
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.inheritedSocket = inherited.rawValue
        configuration.receiveBufferSize = 4096
        let monitor = PathMonitor(configuration: configuration)
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        #expect(monitor.failure == nil)
        #expect(watch.status.isReachable)
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        monitor.catchUp()
        #expect(monitor.statistics.recomputations > 1)
        #expect(Self.bufferSize(inherited.rawValue) == size)
    }

    @Test func `an inherited socket may have a filter from an earlier owner`() async throws {
        let testbed = try VethTestbed()
        let inherited = open(testbed.near)
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.inheritedSocket = inherited.rawValue
        // The earlier owner watches nothing, so its filter drops nearly all notifications of routes.
        do {
            let before = PathMonitor(configuration: configuration)
            before.narrowFilter()
            before.catchUp()
        }
        let monitor = PathMonitor(configuration: configuration)
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        #expect(watch.status.isReachable)
        let (statuses, other) = monitor.record(watch.target)
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        try await statuses.waitForLast { $0.reason == .blackhole }
        other.cancel()
    }

    @Test func `an invalid inherited socket is rejected with a failure`() throws {
        let namespace = try NetworkNamespace()
        let file = try FileDescriptor.opening("/dev/null")
        // 9 is NETLINK_AUDIT, a different netlink protocol.
        let audit = open(namespace, protocolNumber: 9)
        for descriptor in [file.rawValue, audit.rawValue, -1] {
            var configuration = PathMonitor.Configuration(in: namespace)
            configuration.inheritedSocket = descriptor
            #expect(PathMonitor(configuration: configuration).failure != nil)
        }
    }
}
