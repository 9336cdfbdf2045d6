package import Glibc

extension IPAddress {
    /// Creates an address from a `sockaddr_in` or `sockaddr_in6`. Returns `nil` for other families.
    package init?(socketAddress pointer: UnsafePointer<sockaddr>?) {
        guard let pointer else { return nil }
        switch CInt(pointer.pointee.sa_family) {
        case AF_INET:
            let address = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in.self)
            self.init(bytes: withUnsafeBytes(of: address.sin_addr, Array.init))
        case AF_INET6:
            let address = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in6.self)
            self.init(bytes: withUnsafeBytes(of: address.sin6_addr, Array.init), zone: address.sin6_scope_id)
        default:
            return nil
        }
    }

    /// Creates the address to which a socket is bound (`getsockname(2)`). Returns `nil` if the socket has none.
    package init?(localOf descriptor: CInt) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let address = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                getsockname(descriptor, pointer, &length) == 0 ? IPAddress(socketAddress: pointer) : nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    /// Calls a function with the address as a `sockaddr_in` or `sockaddr_in6`.
    ///
    /// - Parameters:
    ///   - port: The port, in host byte order.
    ///   - scope: The interface index to use for a link-local address without a zone. Default 0: none.
    ///   - body: The function. The pointer is valid only during the call.
    package func withSocketAddress<Result>(
        port: UInt16,
        scope: UInt32 = 0,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        family == .ipv4
            ? Self.withBytes(of: ipv4(port), body)
            : Self.withBytes(of: ipv6(port, scope), body)
    }

    private func ipv4(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
        return address
    }

    private func ipv6(_ port: UInt16, _ scope: UInt32) -> sockaddr_in6 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_scope_id = zone == 0 && isLinkLocal ? scope : zone
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
        return address
    }

    private static func withBytes<Address, Result>(
        of address: Address,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                body(pointer, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}
