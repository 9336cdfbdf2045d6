internal import Glibc

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
