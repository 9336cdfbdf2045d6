internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The watchdog's thread.
@Suite(.timeLimit(.minutes(5))) struct TurnWatchdogTests {
    /// The delay decides whether the stop comes between two checks or while the thread is asleep. The thread must end
    /// in each case.
    @Test(arguments: [
        Duration.zero, TurnWatchdog.interval / 2, TurnWatchdog.interval * 5 / 4, TurnWatchdog.interval * 3,
    ])
    func `the thread ends when the watchdog is stopped`(delay: Duration) async throws {
        let ends = Recorder<Void>()
        let watchdog = TurnWatchdog()
        try watchdog.start { ends.record(()) }
        watchdog.turnWillBegin()
        watchdog.turnDidEnd()
        try await Task.sleep(for: delay)
        #expect(ends.values.isEmpty)
        watchdog.stop()
        try await ends.wait { !$0.isEmpty }
    }

    /// The engine may begin its first turn before the watchdog's thread runs, and that turn may never end.
    @Test func `a connection is shut down if its turn began before the thread`() async throws {
        let watchdog = TurnWatchdog()
        let aborted = try await Self.readWithoutEnd(watchdog) { connection in
            watchdog.add(connection)
            try watchdog.start()
            return { watchdog.remove(connection) }
        }
        #expect(aborted?.bytes ?? 0 > 0)
    }

    /// libcurl may read without end in the turn in which it receives the connection, before it asks to watch it.
    @Test func `a connection that libcurl does not watch yet is shut down`() async throws {
        let watchdog = TurnWatchdog()
        try watchdog.start()
        let aborted = try await Self.readWithoutEnd(watchdog) { connection in
            var watches = SocketWatches(try EventLoop(label: "loop"), watchdog) { _, _ in }
            watches.observe(connection)
            return {
                watches.remove(connection)
                return watches.takeAborted().first
            }
        }
        #expect(aborted?.bytes ?? 0 > 0)
    }

    /// Reads from a server that never stops sending, in one turn, until the watchdog shuts the connection down.
    ///
    /// - Parameter watch: Lets the watchdog observe the connection. Returns a function that ends this and returns the
    ///   record of the shutdown.
    private static func readWithoutEnd(
        _ watchdog: TurnWatchdog,
        _ watch: @escaping @Sendable (CInt) throws -> () -> TurnWatchdog.AbortedConnection?
    ) async throws -> TurnWatchdog.AbortedConnection? {
        let server = try SocketServer { peer in
            while peer.write([UInt8](repeating: 0, count: 1 << 16)) {}
        }
        let connection = try connect(to: server.port)
        let aborted = Recorder<TurnWatchdog.AbortedConnection?>()
        try startDetachedThread(named: "turn") {
            watchdog.turnWillBegin()
            let unwatch = try? watch(connection)
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            while recv(connection, &bytes, bytes.count, 0) > 0 {}
            watchdog.turnDidEnd()
            aborted.record(unwatch?())
            close(connection)
            watchdog.stop()
        }
        try await aborted.wait { !$0.isEmpty }
        withExtendedLifetime(server) {}
        return aborted.values[0]
    }

    /// Returns the descriptor of a connection to 127.0.0.1.
    private static func connect(to port: UInt16) throws -> CInt {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = try systemCall("socket") { socket(AF_INET, type, 0) }
        let address = try #require(IPAddress("127.0.0.1"))
        try systemCall("connect") {
            address.withSocketAddress(port: port) { Glibc.connect(descriptor, $0, $1) }
        }
        return descriptor
    }
}
