internal import CNetwatchTestSupport
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A host with two links to a server, and several ways to cut the path to that server. A cut takes microseconds, so
/// that a test can measure the time until a request arrives.
final class NetworkCuts: Sendable {
    enum Kind: String, CaseIterable {
        case cable
        case route
        case address
        case blackhole
        case prohibit
        /// Moves the route to the other link.
        case roaming
        /// Takes down a link whose neighbours need no discovery, as with a modem or a tunnel.
        case link

        /// Whether the cut takes the link down.
        var isOfLink: Bool { self == .cable || self == .link }
    }

    let testbed: TwoCableTestbed

    var near: NetworkNamespace { testbed.near }
    var far: NetworkNamespace { testbed.far }

    /// Creates the links without default routes. The only path to the server is then the route that a cut changes.
    init() throws {
        testbed = try TwoCableTestbed()
        try testbed.near.ip("route del default", "-6 route del default")
    }

    func cut(_ kind: Kind) throws {
        switch kind {
        case .link:
            try testbed.knowNeighbour()
            fallthrough
        case .cable: try change(in: far) { netwatch_set_link("far1", 0) }
        case .route: try change(in: near) { netwatch_change_route(0, unicast, TwoCableTestbed.host, nil) }
        case .address: try change(in: near) { netwatch_change_address(0, "near1", "203.0.113.1") }
        case .blackhole: try route(blackhole, nil)
        case .prohibit: try route(prohibit, nil)
        case .roaming: try route(unicast, VethTestbed.farAddress)
        }
    }

    func restore(_ kind: Kind) throws {
        switch kind {
        case .cable, .link: try change(in: far) { netwatch_set_link("far1", 1) }
        case .address:
            try change(in: near) { netwatch_change_address(1, "near1", "203.0.113.1") }
            // The kernel removed the route together with the address.
            try route(unicast, "203.0.113.2")
        case .route, .blackhole, .prohibit, .roaming: try route(unicast, "203.0.113.2")
        }
    }

    private func route(_ type: CInt, _ gateway: String?) throws {
        try change(in: near) { netwatch_change_route(1, type, TwoCableTestbed.host, gateway) }
    }

    private func change(in namespace: NetworkNamespace, _ body: @escaping @Sendable () -> CInt) throws {
        let error = namespace.run(body)
        if error != 0 { throw SystemError(call: "rtnetlink", errno: error) }
    }
}

// RTN_UNICAST, RTN_BLACKHOLE and RTN_PROHIBIT of linux/rtnetlink.h.
private let unicast: CInt = 1
private let blackhole: CInt = 6
private let prohibit: CInt = 8
