internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A connection that the watchdog observes. The number distinguishes it from earlier connections with the same
/// descriptor, because the kernel reuses descriptors.
struct WatchedSocket: Hashable, Sendable {
    let descriptor: CInt
    let number: UInt64

    /// Returns the number of bytes read from a connection so far: the bytes received minus those not read yet.
    ///
    /// The number is 0 for sockets other than TCP. No caller needs it there: over a unix socket libcurl speaks HTTP/1.1,
    /// which has no frames that could keep it busy.
    static func readBytes(of descriptor: CInt) -> UInt64 {
        var waiting: CInt = 0
        guard let counts = byteCounts(of: descriptor), netwatch_unread_bytes(descriptor, &waiting) == 0
        else { return 0 }
        return counts.received - min(counts.received, UInt64(max(0, waiting)))
    }

    /// Returns the number of bytes that the peer's kernel has acknowledged, and the number of bytes received from the
    /// peer. Returns `nil` for a socket that is not TCP.
    private static func byteCounts(of descriptor: CInt) -> (acknowledged: UInt64, received: UInt64)? {
        // The offset of tcpi_bytes_acked in `struct tcp_info` of <linux/tcp.h>. The next field is tcpi_bytes_received.
        // The C library's struct lacks both.
        let offset = 120
        return withUnsafeTemporaryAllocation(byteCount: offset + 16, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                length >= info.count
            else { return nil }
            return (
                info.load(fromByteOffset: offset, as: UInt64.self),
                info.load(fromByteOffset: offset + 8, as: UInt64.self)
            )
        }
    }

    static func localPort(of descriptor: CInt) -> Int {
        WatchedSocket(descriptor: descriptor, number: 0).address(getsockname).port
    }

    /// Returns the peer; `nil` for a unix socket.
    static func peer(of descriptor: CInt) -> ConnectionPeer? {
        let (address, port) = WatchedSocket(descriptor: descriptor, number: 0).address(getpeername)
        return address.map { ConnectionPeer(address: $0, port: UInt16(port)) }
    }

    /// Returns whether a socket has nothing to read: neither data nor the end of the stream.
    static func isQuiet(_ descriptor: CInt) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    /// Shuts a connection down and reads what has arrived. libcurl then detects that the connection is closed. As long
    /// as there is something to read, it takes the connection for an open one.
    static func discard(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_RDWR))
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 1) { buffer in
            while recv(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT)) > 0 {}
        }
    }

    /// Returns the number of sent bytes that the peer's kernel has not acknowledged; 0 for a socket that is not TCP.
    static func unacknowledgedBytes(of descriptor: CInt) -> Int {
        byteCounts(of: descriptor) == nil ? 0 : queuedBytes(of: descriptor)
    }

    /// Returns the number of bytes in the socket's send queue.
    private static func queuedBytes(of descriptor: CInt) -> Int {
        var count: CInt = 0
        return netwatch_unacknowledged_bytes(descriptor, &count) == 0 ? Int(count) : 0
    }

    /// Returns the number of bytes that the peer's kernel has acknowledged; 0 for a socket that is not TCP.
    static func acknowledgedBytes(of descriptor: CInt) -> UInt64 {
        byteCounts(of: descriptor)?.acknowledged ?? 0
    }

    /// Returns the number of bytes that this machine's kernel has accepted for sending to the peer; `nil` for a socket
    /// that is not TCP.
    static func sentBytes(of descriptor: CInt) -> UInt64? {
        byteCounts(of: descriptor).map { $0.acknowledged + UInt64(queuedBytes(of: descriptor)) }
    }

    /// Makes close(2) reset the connection. Without this option, the kernel continues to send unacknowledged data after
    /// the close.
    static func discardUnacknowledgedOnClose(_ descriptor: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    var ends: ConnectionEnds {
        ConnectionEnds(
            localPort: address(getsockname).port,
            remotePort: address(getpeername).port,
            remoteAddress: address(getpeername).address?.description
        )
    }

    private func address(
        _ get: (CInt, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) -> (address: IPAddress?, port: Int) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout.size(ofValue: storage))
        let result = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { get(descriptor, $0, &length) }
        }
        guard result == 0 else { return (nil, 0) }
        return withUnsafeBytes(of: storage) { bytes in
            let port = Int(bytes[2]) << 8 | Int(bytes[3])
            switch CInt(storage.ss_family) {
            case AF_INET: return (IPAddress(bytes: Array(bytes[4..<8])), port)
            case AF_INET6: return (IPAddress(bytes: Array(bytes[8..<24])), port)
            default: return (nil, 0)
            }
        }
    }

    /// Shuts the connection down in both directions. libcurl can still read the data that has already arrived, and then
    /// reads the end of the stream. If the peer sends more, the kernel resets the connection.
    func shutDown() {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }
}
