internal import Glibc
internal import NetwatchEventLoop

/// A TCP socket that never blocks, closed when its last owner goes.
final class StreamSocket: Sendable {
    private let owner: FileDescriptor

    private init(_ owner: consuming FileDescriptor) { self.owner = owner }

    var descriptor: CInt { owner.rawValue }

    /// Makes a socket that is being connected; it is writable once that is decided.
    ///
    /// - Throws: ``SystemError`` of `socket`, or of `connect` when it fails at once (`ENETUNREACH`).
    static func connecting(
        to address: IPAddress,
        port: UInt16,
        on loop: EventLoop
    ) throws(SystemError) -> StreamSocket {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let family = address.family == .ipv4 ? AF_INET : AF_INET6
        let number = try loop.inNetworkNamespace { () throws(SystemError) in
            try systemCall("socket") { Glibc.socket(family, type, 0) }
        }
        let socket = StreamSocket(FileDescriptor(owning: number))
        socket.sendAtOnce()
        do throws(SystemError) {
            try systemCall("connect") {
                address.withSocketAddress(port: port) { Glibc.connect(number, $0, $1) }
            }
        } catch  where error.errno == EINPROGRESS {
            // As it has to be.
        }
        return socket
    }

    /// Without it a small write waits for the acknowledgement of the one before, which the other side may
    /// delay (RFC 9293 §3.7.4). libcurl sets it too.
    private func sendAtOnce() {
        var isOn: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<CInt>.size))
    }

    /// What became of the attempt to connect: 0 or an error number.
    var outcome: CInt {
        var outcome: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &outcome, &size)
        return outcome
    }

    /// Receives what is there; nothing at the end of the stream.
    ///
    /// - Throws: ``SystemError``: `EAGAIN` when nothing is there.
    func receive(atMost count: Int) throws(SystemError) -> [UInt8] {
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

    /// Hands bytes to the kernel and returns how many it took.
    ///
    /// - Throws: ``SystemError``: `EAGAIN` when it takes none now.
    func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> Int {
        try systemCall("send") {
            bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        }
    }

    /// Closes one side (`shutdown(2)`). Fails only when the connection is lost, which reading and writing
    /// will show.
    func shutDown(_ side: Int) {
        Glibc.shutdown(descriptor, CInt(side))
    }
}
