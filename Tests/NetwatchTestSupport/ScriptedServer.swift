internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
package import NetwatchEventLoop

/// An HTTP/1.1 server that follows a script, which may misbehave, on a TCP port or a unix socket.
///
/// One thread accepts connections, and each connection has its own thread. The server records each request before it
/// performs the action for it. ``stop()`` ends all threads. So does releasing the last reference.
package final class ScriptedServer: Sendable {
    /// Returns the action for a request. Called on the thread of the request's connection.
    package typealias Script = @Sendable (Request) -> Action

    /// The TCP port; 0 for a unix socket.
    package let port: UInt16
    private let address: String
    private let core: ScriptedServerCore

    /// Starts a server on a TCP port.
    ///
    /// - Parameters:
    ///   - address: The address to listen on. Default: 127.0.0.1.
    ///   - port: The port. Default: 0, the kernel chooses a free one.
    ///   - namespace: The network namespace of the address. Default: `nil`, the tests' own.
    ///   - mode: How the server handles connections. Default: ``Mode/scripted``.
    ///   - script: Returns the action for each request. Default: an empty response.
    package init(
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        in namespace: NetworkNamespace? = nil,
        mode: Mode = .scripted,
        _ script: @escaping Script = { _ in .respond("") }
    ) throws {
        let listen: @Sendable () -> Result<(descriptor: CInt, port: UInt16), any Error> = {
            Result { try ListeningSocket.tcp(address, port: port) }
        }
        let listener = try (namespace?.run(listen) ?? listen()).get()
        self.address = address
        self.port = listener.port
        core = try ScriptedServerCore(listener.descriptor, mode, script)
    }

    /// Starts a server on a unix socket. Removes an existing file at the path first.
    package init(unixPath: String, _ script: @escaping Script = { _ in .respond("") }) throws {
        address = ""
        port = 0
        core = try ScriptedServerCore(ListeningSocket.unix(unixPath), .scripted, script)
    }

    deinit { stop() }

    /// The base URL, without a trailing slash: `http://ADDRESS:PORT`.
    package var url: String {
        address.contains(":") ? "http://[\(address)]:\(port)" : "http://\(address):\(port)"
    }

    /// The requests so far, in the order of arrival.
    package var requests: [Request] { core.log.withLock { $0.requests } }

    /// The number of accepted connections.
    package var connectionCount: Int { core.log.withLock { $0.connections } }

    /// The client's address of each connection so far, in the order of acceptance; `nil` for a unix socket.
    package var peers: [IPAddress?] { core.log.withLock { $0.peers } }

    /// Waits until at least `count` connections have been accepted, and returns ``peers``.
    package func peers(atLeast count: Int) async -> [IPAddress?] {
        await core.wait { $0.peers.count >= count }
        return peers
    }

    /// Waits until at least `count` requests have arrived, and returns all requests so far.
    @discardableResult
    package func requests(atLeast count: Int) async -> [Request] {
        await core.wait { $0.requests.count >= count }
        return requests
    }

    /// Waits until at least `count` connections have received bytes that a server with ``Mode/deaf`` does not read.
    package func unreadConnections(atLeast count: Int) async {
        await core.wait { $0.unread >= count }
    }

    /// Waits until at most `count` connections are open on the server's side.
    package func openConnections(atMost count: Int) async {
        await core.wait { $0.open.count <= count }
    }

    /// Continues all stalled actions. Later actions do not stall any more.
    package func release() { core.release() }

    /// Shuts down all open connections.
    package func hangUp() { core.hangUp() }

    /// Closes the listener and all connections, and waits until the threads have ended. Further calls have no effect.
    package func stop() { core.stop() }
}

/// The state that the server and its threads share.
final class ScriptedServerCore: Sendable {
    struct Log {
        var requests: [ScriptedServer.Request] = []
        var connections = 0
        var peers: [IPAddress?] = []
        var unread = 0
        var open: Set<CInt> = []
        var isStopped = false
        var waiters: [(condition: @Sendable (Log) -> Bool, wake: CheckedContinuation<Void, Never>)] = []
    }

    let mode: ScriptedServer.Mode
    let script: ScriptedServer.Script
    let log = Lock(Log())
    /// Becomes readable when stalled actions may continue.
    let released: FileDescriptor
    private let listener: FileDescriptor
    private let threads = DispatchGroup()

    init(
        _ listener: CInt,
        _ mode: ScriptedServer.Mode,
        _ script: @escaping ScriptedServer.Script
    ) throws {
        self.listener = FileDescriptor(owning: listener)
        self.mode = mode
        self.script = script
        released = FileDescriptor(owning: try systemCall("eventfd") { eventfd(0, O_CLOEXEC) })
        try startThread { $0.acceptConnections() }
    }

    private func startThread(_ body: @escaping @Sendable (ScriptedServerCore) -> Void) throws {
        threads.enter()
        do {
            try startDetachedThread(named: "scripted-server") {
                body(self)
                self.threads.leave()
            }
        } catch {
            threads.leave()
            throw error
        }
    }

    // MARK: State observed by tests

    /// Changes the log and wakes the tests that wait for the change.
    func record<Result: Sendable>(_ change: @Sendable (inout Log) -> Result) -> Result {
        let (result, woken) = log.withLock { log in
            let result = change(&log)
            let woken = log.waiters.filter { $0.condition(log) }.map(\.wake)
            if !woken.isEmpty { log.waiters = log.waiters.filter { !$0.condition(log) } }
            return (result, woken)
        }
        for wake in woken { wake.resume() }
        return result
    }

    func wait(for condition: @escaping @Sendable (Log) -> Bool) async {
        await withCheckedContinuation { continuation in
            record { $0.waiters.append((condition, continuation)) }
        }
    }

    func release() {
        eventfd_write(released.rawValue, 1)
    }

    func hangUp() {
        // The shutdown wakes the thread of each connection, and the thread then closes its connection.
        log.withLock { log in
            for descriptor in log.open { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func stop() {
        let isFirst = log.withLock { log in
            defer { log.isStopped = true }
            return !log.isStopped
        }
        hangUp()
        guard isFirst else { return }
        release()
        shutdown(listener.rawValue, CInt(SHUT_RDWR))
        threads.wait()
    }

    // MARK: The threads

    private func acceptConnections() {
        while true {
            let (descriptor, peer) = accept()
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                return
            }
            // Only this thread accepts connections, so their numbers follow the order of acceptance.
            let number = record { log in
                guard !log.isStopped else { return 0 }
                log.connections += 1
                log.peers.append(peer)
                log.open.insert(descriptor)
                return log.connections
            }
            try? startThread { $0.serve(descriptor, number) }
        }
    }

    /// Accepts a connection. Returns its descriptor, negative after an error, and its client's address, `nil` on a unix
    /// socket.
    ///
    /// The address is read now, because the kernel forgets it if the client resets the connection.
    private func accept() -> (descriptor: CInt, peer: IPAddress?) {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) { bytes in
            // SOCK_CLOEXEC: a program that another thread starts now would otherwise keep the connection open.
            let descriptor = accept4(listener.rawValue, bytes.baseAddress, &size, CInt(SOCK_CLOEXEC.rawValue))
            let error = errno
            let peer =
                descriptor < 0
                ? nil : IPAddress(socketAddress: bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self))
            errno = error
            return (descriptor, peer)
        }
    }

    private func serve(_ descriptor: CInt, _ number: Int) {
        if number > 0 {
            var connection = ScriptedConnection(descriptor, number: number, server: self)
            connection.serve()
        }
        // Closed while the log is locked: a test that waits for the end of the connection continues after it, and
        // `hangUp` does not shut down a new socket with the same number.
        record { log in
            log.open.remove(descriptor)
            close(descriptor)
        }
    }
}

/// Creates listening sockets.
enum ListeningSocket {
    /// Creates a TCP socket. The caller owns the descriptor.
    ///
    /// - Parameters:
    ///   - host: The address to bind the socket to. Default: 127.0.0.1.
    ///   - port: The port. Default: 0, the kernel chooses a free one.
    ///   - backlog: The length of the backlog. With `nil` the socket is bound but does not listen.
    static func tcp(
        _ host: String = "127.0.0.1",
        port: UInt16 = 0,
        backlog: CInt? = 1024
    ) throws -> (descriptor: CInt, port: UInt16) {
        guard let address = IPAddress(host) else { throw SystemError(call: "bind \(host)", errno: EINVAL) }
        let descriptor = try make(address.family == .ipv4 ? AF_INET : AF_INET6)
        // A server that is started again on a port must not wait for old connections of its predecessor.
        var isOn: CInt = 1
        if port != 0 { setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(4)) }
        try systemCall("bind \(host)") {
            address.withSocketAddress(port: port) { bind(descriptor, $0, $1) }
        }
        if let backlog { try systemCall("listen") { listen(descriptor, backlog) } }
        return (descriptor, try self.port(of: descriptor))
    }

    private static func port(of descriptor: CInt) throws -> UInt16 {
        // The port has the same offset in `sockaddr_in` and `sockaddr_in6`.
        var address = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        try withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            try systemCall("getsockname") { getsockname(descriptor, pointer, &size) }
        }
        return UInt16(bigEndian: address.sin6_port)
    }

    static func unix(_ path: String) throws -> CInt {
        unlink(path)
        let descriptor = try make(AF_UNIX)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        try withUnsafeBytes(of: &address) { bytes in
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            try systemCall("bind \(path)") { bind(descriptor, pointer, socklen_t(bytes.count)) }
        }
        try systemCall("listen") { listen(descriptor, 1024) }
        return descriptor
    }

    private static func make(_ family: CInt) throws -> CInt {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        return try systemCall("socket") { socket(family, type, 0) }
    }
}
