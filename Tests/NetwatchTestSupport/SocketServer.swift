internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop

/// A TCP server that calls a closure for each connection, on a separate thread.
///
/// Releasing the last reference shuts down all connections and waits for their threads.
package final class SocketServer: Sendable {
    package let port: UInt16
    private let core: Core

    /// - Parameters:
    ///   - address: The address to listen on. Default: 127.0.0.1.
    ///   - port: The port. Default: 0, the kernel chooses a free one.
    ///   - play: Handles the server's side of a connection. When it returns, the connection is closed.
    package init(
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        play: @escaping @Sendable (SocketPeer) -> Void
    ) throws {
        let listener = try ListeningSocket.tcp(address, port: port)
        self.port = listener.port
        core = Core(listener.descriptor, play)
        try core.startThread { $0.accept() }
    }

    deinit { core.stop() }

    /// Returns a server that sends all received bytes back, until the client closes its sending side.
    package static func echo(address: String = "127.0.0.1", port: UInt16 = 0) throws -> SocketServer {
        try SocketServer(address: address, port: port) { peer in
            while case let bytes = peer.read(), !bytes.isEmpty { peer.write(bytes) }
        }
    }

    private final class Core: Sendable {
        private struct State {
            var open: Set<CInt> = []
            var isStopped = false
        }

        private let listener: FileDescriptor
        private let play: @Sendable (SocketPeer) -> Void
        private let state = Lock(State())
        private let threads = DispatchGroup()

        init(_ listener: CInt, _ play: @escaping @Sendable (SocketPeer) -> Void) {
            self.listener = FileDescriptor(owning: listener)
            self.play = play
        }

        func startThread(_ body: @escaping @Sendable (Core) -> Void) throws {
            threads.enter()
            do {
                try startDetachedThread(named: "socket-server") {
                    body(self)
                    self.threads.leave()
                }
            } catch {
                threads.leave()
                throw error
            }
        }

        func accept() {
            while case let descriptor = accept4(listener.rawValue, nil, nil, CInt(SOCK_CLOEXEC.rawValue)),
                descriptor >= 0
            {
                do {
                    try startThread { $0.serve(FileDescriptor(owning: descriptor)) }
                } catch {
                    close(descriptor)
                }
            }
        }

        private func serve(_ descriptor: consuming FileDescriptor) {
            let rawValue = descriptor.rawValue
            let isServed = state.withLock { state in
                if !state.isStopped { state.open.insert(rawValue) }
                return !state.isStopped
            }
            if isServed { play(SocketPeer(descriptor: rawValue)) }
            _ = state.withLock { $0.open.remove(rawValue) }
        }

        func stop() {
            state.withLock { state in
                state.isStopped = true
                for descriptor in state.open { shutdown(descriptor, CInt(SHUT_RDWR)) }
            }
            shutdown(listener.rawValue, CInt(SHUT_RDWR))
            threads.wait()
        }
    }
}

/// The server's side of a connection. Its methods block the connection's thread.
package struct SocketPeer: Sendable {
    fileprivate let descriptor: CInt

    /// Waits for data and returns the available bytes. Returns an empty array at the end of the stream.
    package func read(atMost count: Int = 1 << 16) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, recv(descriptor, buffer.baseAddress, count, 0))
        }
    }

    /// Reads until the end of the stream.
    package func readAll() -> [UInt8] {
        var all: [UInt8] = []
        while case let bytes = read(), !bytes.isEmpty { all += bytes }
        return all
    }

    /// Writes all bytes. Returns `false` if the connection was lost before that.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = send(rest, CInt(MSG_NOSIGNAL))
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Writes all bytes, and calls `whenStalled` whenever the kernel has accepted no bytes for 300 ms.
    ///
    /// - Parameter whenStalled: Receives the number of bytes that the kernel has accepted so far.
    package func write(_ bytes: [UInt8], whenStalled: (Int) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&polled, 1, 300) == 0 {
                whenStalled(bytes.count - rest.count)
                poll(&polled, 1, -1)
            }
            let count = send(rest.prefix(1 << 16), CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
            guard count > 0 || errno == EAGAIN else { return }
            rest = rest.dropFirst(max(0, count))
        }
    }

    private func send(_ bytes: ArraySlice<UInt8>, _ flags: CInt) -> Int {
        bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
    }

    /// Waits until the server is released or the connection is reset, without reading.
    package func waitWithoutReading() {
        var polled = pollfd(fd: descriptor, events: 0, revents: 0)
        poll(&polled, 1, -1)
    }

    package func closeWrite() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// Makes a later close reset the connection (`SO_LINGER` of socket(7)).
    package func resetWhenClosed() {
        var setting = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
    }
}
