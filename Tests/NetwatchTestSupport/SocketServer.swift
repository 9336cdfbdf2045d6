internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A TCP server that handles each connection with a closure on a separate thread.
///
/// Releasing the last reference ends all connections and waits for their threads.
package final class SocketServer: Sendable {
    package let port: UInt16
    private let core: Core

    /// - Parameters:
    ///   - address: The address to listen on.
    ///   - port: The port; 0, the default, lets the kernel choose one.
    ///   - play: Handles the server's side of a connection. The connection is closed when it returns.
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

    /// A server that echoes everything until the client closes.
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
        private let state = Mutex(State())
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

/// The server's side of a connection. Its functions block the connection's thread.
package struct SocketPeer: Sendable {
    fileprivate let descriptor: CInt

    /// Reads the available bytes, at least one. Returns none at the end of the stream.
    package func read(atMost count: Int = 1 << 16) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, recv(descriptor, buffer.baseAddress, count, 0))
        }
    }

    /// Reads until the client closes.
    package func readAll() -> [UInt8] {
        var all: [UInt8] = []
        while case let bytes = read(), !bytes.isEmpty { all += bytes }
        return all
    }

    /// Writes all bytes. Returns false if the connection is lost.
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

    /// Writes all bytes. Calls `whenStalled` with the number of bytes accepted so far, each time that none were
    /// accepted for 300 ms.
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

    /// Waits for the server's end without reading.
    package func waitWithoutReading() {
        var polled = pollfd(fd: descriptor, events: 0, revents: 0)
        poll(&polled, 1, -1)
    }

    package func closeWrite() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// Makes closing reset the connection (socket(7), `SO_LINGER`).
    package func resetWhenClosed() {
        var setting = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
    }
}
