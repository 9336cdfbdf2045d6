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

/// The interface and the source address to which a socket is bound. They replace the choice that the kernel would make.
package struct SocketBinding: Hashable, Sendable {
    /// The interface through which packets leave; 0 leaves the choice to the kernel.
    package let interfaceIndex: UInt32
    /// The source address; `nil` leaves the choice to the kernel.
    package let source: IPAddress?
    /// The address family of the path.
    package let family: IPAddress.Family

    package init(interfaceIndex: UInt32, source: IPAddress?, family: IPAddress.Family) {
        self.interfaceIndex = interfaceIndex
        self.source = source
        self.family = family
    }

    /// Applies the binding to a socket that is not connected yet.
    ///
    /// The interface is identified by its index (`SO_BINDTOIFINDEX` of socket(7)), because a name can move to another
    /// interface. Since Linux 5.7, any process may set this option once per socket. If an older kernel (`EPERM`) or a
    /// sandbox (`ENOPROTOOPT`) refuses the option, only the source address is bound.
    ///
    /// If the interface no longer exists, the later connect(2) fails with `ENODEV`.
    ///
    /// - Throws: ``SystemError`` of `setsockopt` or `bind`, with `EADDRNOTAVAIL` if no interface has the source
    ///   address.
    package func apply(to socket: CInt) throws(SystemError) {
        if interfaceIndex != 0 { try bindToInterface(socket) }
        if let source { try bind(socket, to: source) }
    }

    private func bindToInterface(_ socket: CInt) throws(SystemError) {
        do throws(SystemError) {
            try set(SO_BINDTOIFINDEX, of: SOL_SOCKET, on: socket, to: CInt(bitPattern: interfaceIndex))
        } catch  where error.errno == EPERM || error.errno == ENOPROTOOPT {
            // Only the source address is bound.
        }
    }

    private func bind(_ socket: CInt, to source: IPAddress) throws(SystemError) {
        // With this option, connect(2) chooses the port, so that connections to several destinations can share a port.
        // A failure is ignored, because it only reduces the number of possible connections.
        try? set(IP_BIND_ADDRESS_NO_PORT, of: CInt(IPPROTO_IP), on: socket, to: 1)
        try systemCall("bind \(source)") {
            source.withSocketAddress(port: 0, scope: interfaceIndex) { Glibc.bind(socket, $0, $1) }
        }
    }

    private func set(
        _ option: CInt,
        of level: CInt,
        on socket: CInt,
        to value: CInt
    ) throws(SystemError) {
        var value = value
        try systemCall("setsockopt") {
            setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
        }
    }
}
