internal import Glibc
internal import Synchronization

/// A non-blocking TCP socket. It is closed when the last reference is released, unless ``release()`` was called.
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

    /// Opens a socket and starts to connect it. The socket becomes writable when the result is known.
    ///
    /// - Throws: ``SystemError`` of `socket`, of the binding, or of `connect` if it fails immediately
    ///   (`ENETUNREACH`).
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

    /// Disables Nagle's algorithm. Otherwise a small write waits for the previous acknowledgement, which the peer may
    /// delay (RFC 9293 §3.7.4).
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

    /// Receives the available bytes; an empty array at the end of the stream.
    ///
    /// - Throws: ``SystemError``: `EAGAIN` if no bytes are available.
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

    /// Sends bytes and returns how many the kernel accepted.
    ///
    /// - Throws: ``SystemError``: `EAGAIN` if the kernel accepts none now.
    package func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> Int {
        try systemCall("send") {
            bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        }
    }

    /// Shuts down one direction (`shutdown(2)`). It fails only if the connection is lost, which the next read or
    /// write will report.
    package func shutDown(_ side: Int) {
        Glibc.shutdown(descriptor, CInt(side))
    }
}
