/// Two namespaces joined by a veth pair: `near`, where netwatch runs, and `far`, where the servers run.
///
/// The addresses are from RFC 5737 and RFC 3849. `near` has default routes over `far` in both families. After the
/// set-up the kernel makes no further announcements: no link-local address appears a second later, whose announcement
/// would hide that another one was missed.
package struct VethTestbed: Sendable {
    package let near: NetworkNamespace
    package let far: NetworkNamespace

    package static let nearAddress = "192.0.2.1"
    package static let farAddress = "192.0.2.2"
    package static let farIPv6Address = "2001:db8::2"
    /// Addresses behind `far`, reached only over the default route.
    package static let remoteAddress = "198.51.100.7"
    package static let remoteIPv6Address = "2001:db8:ffff::7"

    /// - Parameter near: A namespace without cables. Default: a new one with loopback.
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
        // The kernel reports the carrier of a new link only some time after the link is up.
        try near.wait(until: "-br link show near0", prints: " UP ")
    }

    /// Adds the default routes, which are lost when a link goes down.
    package func addDefaultRoutes() throws {
        try near.ip(
            "route replace default via \(Self.farAddress)",
            "-6 route replace default via \(Self.farIPv6Address)"
        )
    }

    /// Disconnects or connects the cable at the far end, so that `near0` loses or regains its carrier.
    package func setCable(connected: Bool) throws {
        try far.ip("link set far0 \(connected ? "up" : "down")")
    }
}
