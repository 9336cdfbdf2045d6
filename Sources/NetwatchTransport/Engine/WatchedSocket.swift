internal import CNetwatchLinux
internal import Glibc

/// A connection, which its descriptor alone does not name: the next one gets the same.
struct WatchedSocket: Hashable, Sendable {
    let descriptor: CInt
    let number: UInt64

    /// How many bytes were read from it since it was made: those that have come without those that wait. 0 for a socket
    /// that is not TCP; over a unix socket libcurl speaks HTTP/1.1, where nothing keeps it.
    var readBytes: UInt64 {
        // `struct tcp_info` of <linux/tcp.h> up to and with tcpi_bytes_received, which the C library's lacks.
        let offset = 128
        var waiting: CInt = 0
        return withUnsafeTemporaryAllocation(byteCount: offset + 8, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                length >= info.count, netwatch_unread_bytes(descriptor, &waiting) == 0
            else {
                return 0
            }
            let received = info.load(fromByteOffset: offset, as: UInt64.self)
            return received - min(received, UInt64(max(0, waiting)))
        }
    }

    /// The port of this end; 0 for a socket that has none.
    var localPort: Int {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        withUnsafeMutablePointer(to: &address) { address in
            let address = UnsafeMutableRawPointer(address).assumingMemoryBound(to: sockaddr.self)
            _ = getsockname(descriptor, address, &length)
        }
        // It is in the same place for both families.
        let hasPort = [AF_INET, AF_INET6].contains(CInt(address.sin6_family))
        return hasPort ? Int(address.sin6_port.bigEndian) : 0
    }

    /// Ends it in both directions. What has come may still be read, and then there is an end; whatever comes later makes
    /// the kernel reset the connection.
    func shutDown() {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }
}
