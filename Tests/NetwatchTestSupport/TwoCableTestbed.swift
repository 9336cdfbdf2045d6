internal import Glibc
package import NetwatchEventLoop

/// A ``VethTestbed`` with a second cable between the same namespaces, and a host that `near` can reach over both.
///
/// The routes of `near` prefer the second cable. `far` drops a packet if its own reply would use the other cable
/// (`rp_filter`). So a connection with a wrong combination of cable and source address fails.
package struct TwoCableTestbed: Sendable {
    /// The end of a cable in `near`: its interface and its address.
    package struct Cable: Sendable {
        package let name: String
        package let index: UInt32
        package let source: IPAddress

        /// The interface and source address of a socket that uses this cable.
        package var binding: SocketBinding {
            SocketBinding(interfaceIndex: index, source: source, family: .ipv4)
        }
    }

    /// The address of the host that can be reached over both cables. It belongs to the loopback interface of `far`.
    package static let host = VethTestbed.remoteAddress

    package let testbed: VethTestbed
    package let first: Cable
    package let second: Cable

    package var near: NetworkNamespace { testbed.near }
    package var far: NetworkNamespace { testbed.far }

    package init() throws {
        testbed = try VethTestbed()
        let (near, far) = (testbed.near, testbed.far)
        try near.ip("link add near1 type veth peer name far1 netns \(far.path)")
        try near.ip("link set near1 addrgenmode none")
        try far.ip(
            "link set far1 addrgenmode none",
            "addr add 203.0.113.2/24 dev far1",
            "link set far1 up",
            "addr add \(Self.host)/32 dev lo"
        )
        try far.shell("for f in all far0 far1; do echo 1 > /proc/sys/net/ipv4/conf/$f/rp_filter; done")
        try near.ip("addr add 203.0.113.1/24 dev near1", "link set near1 up")
        try near.wait(until: "-br link show near1", prints: " UP ")
        first = Self.cable("near0", VethTestbed.nearAddress, near)
        second = Self.cable("near1", "203.0.113.1", near)
        try near.ip("route add \(Self.host) via 203.0.113.2")
    }

    private static func cable(_ name: String, _ source: String, _ near: NetworkNamespace) -> Cable {
        let index = near.run { if_nametoindex(name) }
        return Cable(name: name, index: index, source: IPAddress(source)!)
    }

    /// Adds a permanent neighbour entry for the far end of the second cable.
    ///
    /// Without it, the kernel forgets the neighbour when the cable loses its carrier. Afterwards the kernel holds
    /// packets back until it has found the neighbour again, for which it sends one query per second.
    package func knowNeighbour() throws {
        let address = try far.shell("ip -o link show far1 2>/dev/null | sed 's/.*link.ether //; s/ .*//'")
        try near.ip(
            "neigh replace 203.0.113.2 lladdr \(address.prefix { !$0.isNewline }) dev near1 nud permanent"
        )
    }

    /// Makes the routes of `near` prefer the first cable.
    package func preferFirstCable() throws {
        try near.ip("route del \(Self.host)")
    }
}
