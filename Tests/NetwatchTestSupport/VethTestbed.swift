/// Two network namespaces that a veth pair (the "cable") connects: `near`, where netwatch runs, and `far`, where the
/// servers run.
///
/// The addresses are from RFC 5737 and RFC 3849. `near` has an IPv4 and an IPv6 default route via `far`. The interfaces
/// get no link-local addresses. Otherwise the kernel would send notifications of them a second after the set-up, which
/// would hide that the monitor missed another notification.
package struct VethTestbed: Sendable {
    package let near: NetworkNamespace
    package let far: NetworkNamespace

    package static let nearAddress = "192.0.2.1"
    package static let farAddress = "192.0.2.2"
    package static let farIPv6Address = "2001:db8::2"
    /// An IPv4 address behind `far`, which only the default route covers.
    package static let remoteAddress = "198.51.100.7"
    /// An IPv6 address behind `far`, which only the default route covers.
    package static let remoteIPv6Address = "2001:db8:ffff::7"

    /// - Parameter near: A namespace without cables. Default: `nil`, a new one with a loopback interface that is up.
    package init(near: NetworkNamespace? = nil) throws {
        self.near = try near ?? NetworkNamespace()
        let near = self.near
        far = try NetworkNamespace()
        try near.ip("link add near0 type veth peer name far0 netns \(far.path)")
        try near.ip("link set near0 addrgenmode none")
        try far.ip(
            "link set far0 addrgenmode none",
            "addr add \(Self.farAddress)/24 dev far0",
            "addr add \(Self.farIPv6Address)/64 dev far0 nodad",
            "link set far0 up"
        )
        try near.ip(
            "addr add \(Self.nearAddress)/24 dev near0",
            "addr add 2001:db8::1/64 dev near0 nodad",
            "link set near0 up"
        )
        try addDefaultRoutes()
        // The kernel reports the carrier of a new link only a moment after the link is up.
        try near.wait(until: "-br link show near0", prints: " UP ")
    }

    /// Adds the default routes of `near`. The kernel removes them when `near0` is set down.
    package func addDefaultRoutes() throws {
        try near.ip(
            "route replace default via \(Self.farAddress)",
            "-6 route replace default via \(Self.farIPv6Address)"
        )
    }

    /// Connects or unplugs the cable at the far end, so that `near0` regains or loses its carrier.
    package func setCable(connected: Bool) throws {
        try far.ip("link set far0 \(connected ? "up" : "down")")
    }
}
