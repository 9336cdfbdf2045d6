internal import Glibc
internal import NetwatchEventLoop

/// An ICMPv6 router advertisement (RFC 4861 §4.2) with routes (RFC 4191) and prefixes.
package struct RouterAdvertisement: Sendable, CustomStringConvertible {
    /// A prefix with its lifetime in seconds; `UInt32.max` is unlimited.
    package struct Prefix: Sendable {
        let address: IPAddress
        let length: UInt8
        let lifetime: UInt32

        /// - Parameter prefix: An IPv6 prefix, such as `2001:db8::/64`.
        package init(_ prefix: String, lifetime: UInt32) {
            let parts = prefix.split(separator: "/")
            address = IPAddress(String(parts[0]))!
            length = UInt8(parts[1])!
            self.lifetime = lifetime
        }
    }

    /// The lifetime of the default route over this router, in seconds; 0 for none.
    private let routerLifetime: UInt16
    private let routes: [Prefix]
    private let onLinkPrefixes: [Prefix]

    /// - Parameters:
    ///   - routerLifetime: The lifetime of the default route over this router, in seconds. Default: 0, no default route.
    ///   - routes: Further routes over this router. Default: none.
    ///   - onLinkPrefixes: Prefixes whose addresses are on the link. Hosts do not create addresses from them.
    package init(routerLifetime: UInt16 = 0, routes: [Prefix] = [], onLinkPrefixes: [Prefix] = []) {
        self.routerLifetime = routerLifetime
        self.routes = routes
        self.onLinkPrefixes = onLinkPrefixes
    }

    package var description: String {
        let router = routerLifetime == 0 ? ["no default route"] : ["a default route for \(routerLifetime) s"]
        let routes =
            routes.prefix(2).map { "\($0)" } + (routes.count > 2 ? ["… (\(routes.count) routes)"] : [])
        return (router + routes + onLinkPrefixes.map { "on-link \($0)" }).joined(separator: ", ")
    }

    /// Sends the advertisement to all nodes on a link. The kernel adds the checksum.
    ///
    /// - Parameters:
    ///   - source: A link-local address of the interface.
    ///   - interface: The name of an interface of the namespace.
    /// - Throws: ``SystemError`` of `socket`, `bind`, `setsockopt` or `sendto`. Needs `CAP_NET_RAW`.
    package func send(from source: String, on interface: String, in namespace: NetworkNamespace) throws {
        let bytes = bytes
        let sent: Result<Void, SystemError> = namespace.run {
            Result { () throws(SystemError) in
                let index = if_nametoindex(interface)
                guard index != 0 else { throw SystemError(call: "if_nametoindex \(interface)", errno: errno) }
                try Self.send(
                    bytes,
                    from: IPAddress(source)!.inZone(index),
                    to: IPAddress("ff02::1")!.inZone(index)
                )
            }
        }
        try sent.get()
    }

    private static func send(
        _ bytes: [UInt8],
        from source: IPAddress,
        to destination: IPAddress
    ) throws(SystemError) {
        let type = CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue)
        let owner = FileDescriptor(
            owning: try systemCall("socket") { socket(AF_INET6, type, CInt(IPPROTO_ICMPV6)) }
        )
        let descriptor = owner.rawValue
        // Receivers ignore advertisements with another hop limit (RFC 4861 §6.1.2).
        var hops: CInt = 255
        try systemCall("setsockopt") {
            setsockopt(
                descriptor,
                CInt(IPPROTO_IPV6),
                IPV6_MULTICAST_HOPS,
                &hops,
                socklen_t(MemoryLayout<CInt>.size)
            )
        }
        try systemCall("bind") { source.withSocketAddress(port: 0) { bind(descriptor, $0, $1) } }
        try systemCall("sendto") {
            destination.withSocketAddress(port: 0) { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
        }
    }

    private var bytes: [UInt8] {
        // Type 134, no checksum, hop limit 64, no flags. Both timers are unspecified.
        let header: [UInt8] =
            [134, 0, 0, 0, 64, 0] + routerLifetime.networkBytes + Array(repeating: 0, count: 8)
        return header + routes.flatMap(\.routeOption) + onLinkPrefixes.flatMap(\.prefixOption)
    }
}

extension RouterAdvertisement.Prefix: CustomStringConvertible {
    package var description: String {
        "\(address)/\(length) " + (lifetime == .max ? "without end" : "for \(lifetime) s")
    }

    /// A route information option (RFC 4191 §2.3) of medium preference.
    fileprivate var routeOption: [UInt8] {
        [24, 3, length, 0] + lifetime.networkBytes + address.bytes
    }

    /// A prefix information option (RFC 4861 §4.6.2) with the flag L, and with equal lifetimes.
    fileprivate var prefixOption: [UInt8] {
        [3, 4, length, 0x80] + lifetime.networkBytes + lifetime.networkBytes + [0, 0, 0, 0] + address.bytes
    }
}

extension FixedWidthInteger {
    fileprivate var networkBytes: [UInt8] {
        withUnsafeBytes(of: bigEndian, Array.init)
    }
}
