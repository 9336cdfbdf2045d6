package import Glibc

extension IPAddress {
    /// Reads the address of a `sockaddr_in` or `sockaddr_in6`; `nil` for other families.
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

    /// The address that a socket is bound to (`getsockname(2)`); `nil` when it has none.
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

    /// Calls `body` with the address as a `sockaddr_in` or `sockaddr_in6` and its length.
    package func withSocketAddress<Result>(
        port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        switch family {
        case .ipv4: Self.withPointer(to: ipv4(port: port), body)
        case .ipv6: Self.withPointer(to: ipv6(port: port), body)
        }
    }

    private func ipv4(port: UInt16) -> sockaddr_in {
        var result = sockaddr_in()
        result.sin_family = sa_family_t(AF_INET)
        result.sin_port = port.bigEndian
        withUnsafeMutableBytes(of: &result.sin_addr) { $0.copyBytes(from: bytes) }
        return result
    }

    private func ipv6(port: UInt16) -> sockaddr_in6 {
        var result = sockaddr_in6()
        result.sin6_family = sa_family_t(AF_INET6)
        result.sin6_port = port.bigEndian
        result.sin6_scope_id = zone
        withUnsafeMutableBytes(of: &result.sin6_addr) { $0.copyBytes(from: bytes) }
        return result
    }

    private static func withPointer<Address, Result>(
        to address: Address,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}
