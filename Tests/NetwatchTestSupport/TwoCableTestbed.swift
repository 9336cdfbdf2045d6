internal import Glibc
package import NetwatchEventLoop

/// A ``VethTestbed`` with a second cable between the same namespaces, and a host that can be reached over both.
///
/// The routes of `near` prefer the second cable. `far` drops packets that arrive over a different cable than the reply
/// would use (`rp_filter`), so a connection is made over the right cable or not at all.
package struct TwoCableTestbed: Sendable {
    /// A cable, seen from `near`.
    package struct Cable: Sendable {
        package let name: String
        package let index: UInt32
        package let source: IPAddress

        /// The binding of a socket to this cable.
        package var binding: SocketBinding {
            SocketBinding(interfaceIndex: index, source: source, family: .ipv4)
        }
    }

    /// The host that can be reached over both cables; an address of `far`.
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

    /// Tells the kernel of the neighbour at the other end of the second cable, as on a link without addresses. It
    /// forgets other neighbours with the carrier, keeps packets until they are found, and looks for them once a second.
    package func knowNeighbour() throws {
        let address = try far.shell("ip -o link show far1 | sed 's/.*link.ether //; s/ .*//'")
        try near.ip(
            "neigh replace 203.0.113.2 lladdr \(address.prefix { !$0.isNewline }) dev near1 nud permanent"
        )
    }

    /// Makes the routes prefer the first cable.
    package func preferFirstCable() throws {
        try near.ip("route del \(Self.host)")
    }
}
