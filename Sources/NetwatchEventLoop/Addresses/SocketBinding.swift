internal import Glibc

/// The interface and source address of a socket's packets, independent of the route that the kernel would choose.
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
    /// interface. Since Linux 5.7, any process may set this once per socket. If an older kernel (`EPERM`) or a
    /// sandbox (`ENOPROTOOPT`) refuses it, only the source address is bound.
    ///
    /// If the interface no longer exists, connect(2) fails with `ENODEV`.
    ///
    /// - Throws: ``SystemError``: `EADDRNOTAVAIL` if no interface has the source address.
    package func apply(to socket: CInt) throws(SystemError) {
        do throws(SystemError) {
            try set(SO_BINDTOIFINDEX, of: SOL_SOCKET, on: socket, to: CInt(bitPattern: interfaceIndex))
        } catch  where error.errno == EPERM || error.errno == ENOPROTOOPT {
            // Bind only the source address.
        }
        if let source { try bind(socket, to: source) }
    }

    private func bind(_ socket: CInt, to source: IPAddress) throws(SystemError) {
        // Lets connect(2) choose the port, so that several destinations can share it. A failure is harmless.
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
