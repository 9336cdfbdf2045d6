internal import Glibc
internal import Synchronization

/// A non-blocking TCP socket. Releasing the last reference closes it, unless ``release()`` was called.
package final class TCPSocket: Sendable {
    package let descriptor: CInt
    private let isOwned = Atomic(true)

    private init(owning descriptor: CInt) { self.descriptor = descriptor }

    deinit {
        if isOwned.load(ordering: .relaxed) { close(descriptor) }
    }

    /// Transfers ownership of the descriptor to the caller, which must close it.
    package func release() -> CInt {
        isOwned.store(false, ordering: .relaxed)
        return descriptor
    }

    /// Opens a socket and begins to connect it. The socket becomes writable when the result is known (``outcome``).
    ///
    /// - Throws: ``SystemError`` of `socket`, of the binding, or of `connect` if it fails immediately, for example with
    ///   `ENETUNREACH`.
    static func connecting(
        to candidate: ConnectionCandidate,
        port: UInt16,
        on loop: EventLoop
    ) throws(SystemError) -> TCPSocket {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let family = candidate.address.family == .ipv4 ? AF_INET : AF_INET6
        let socket = TCPSocket(
            owning: try loop.inNetworkNamespace { () throws(SystemError) in
                try systemCall("socket") { Glibc.socket(family, type, 0) }
            }
        )
        try candidate.binding?.apply(to: socket.descriptor)
        socket.disableNagle()
        do throws(SystemError) {
            try systemCall("connect") {
                candidate.address.withSocketAddress(port: port, scope: candidate.binding?.interfaceIndex ?? 0)
                {
                    connect(socket.descriptor, $0, $1)
                }
            }
        } catch  where error.errno == EINPROGRESS {
            // Expected for a non-blocking socket.
        }
        return socket
    }

    /// Disables Nagle's algorithm. With it, a small write waits until the peer has acknowledged the previous write, and
    /// the peer may delay that acknowledgement (RFC 9293 §3.7.4).
    private func disableNagle() {
        var isOn: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<CInt>.size))
    }

    /// The result of connecting: 0 or an error number.
    var outcome: CInt {
        var outcome: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &outcome, &size)
        return outcome
    }

    /// Receives the available bytes. Returns an empty array at the end of the stream.
    ///
    /// - Throws: ``SystemError`` of `recv`, with `EAGAIN` if no bytes are available.
    package func receive(atMost count: Int) throws(SystemError) -> [UInt8] {
        var received = 0
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(SystemError) {
                received = try systemCall("recv") { recv(descriptor, buffer.baseAddress, count, 0) }
            } catch {
                failure = error
            }
            initialized = received
        }
        if let failure { throw failure }
        return bytes
    }

    /// Sends bytes. Returns the number of bytes that the kernel accepted.
    ///
    /// - Throws: ``SystemError`` of `send`, with `EAGAIN` if the kernel accepts none at the moment.
    package func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> Int {
        try systemCall("send") {
            bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        }
    }

    /// Shuts down one direction of the connection (`shutdown(2)`). An error is ignored: it means that the connection is
    /// lost, and the next read or write reports that.
    ///
    /// - Parameter side: `SHUT_RD` or `SHUT_WR`.
    package func shutDown(_ side: Int) {
        Glibc.shutdown(descriptor, CInt(side))
    }
}
