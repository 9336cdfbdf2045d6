internal import Glibc

/// The way that a socket's packets have to take, whatever route the kernel would choose without it.
package struct SocketBinding: Hashable, Sendable {
    /// The interface that packets leave by; 0 leaves it to the kernel.
    package let interfaceIndex: UInt32
    /// The address they come from; `nil` leaves it to the kernel.
    package let source: IPAddress?
    /// The family that the way is of.
    package let family: IPAddress.Family

    package init(interfaceIndex: UInt32, source: IPAddress?, family: IPAddress.Family) {
        self.interfaceIndex = interfaceIndex
        self.source = source
        self.family = family
    }

    /// Ties a socket that is not connected yet to the way.
    ///
    /// The interface is named by its index (`SO_BINDTOIFINDEX` of socket(7)), because a name can pass to
    /// another one. Anyone may do that once since Linux 5.7; where it is refused, by an older kernel
    /// (`EPERM`) or a sandbox (`ENOPROTOOPT`), the source address has to do.
    ///
    /// An interface that is gone is noticed by connect(2), with `ENODEV`.
    ///
    /// - Throws: ``SystemError``: `EADDRNOTAVAIL` when the source address is gone.
    package func apply(to socket: CInt) throws(SystemError) {
        do throws(SystemError) {
            try set(SO_BINDTOIFINDEX, of: SOL_SOCKET, on: socket, to: CInt(bitPattern: interfaceIndex))
        } catch  where error.errno == EPERM || error.errno == ENOPROTOOPT {
            // The source address alone.
        }
        if let source { try bind(socket, to: source) }
    }

    private func bind(_ socket: CInt, to source: IPAddress) throws(SystemError) {
        // Lets connect(2) choose the port, which it can share among destinations. Nothing depends on it.
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
