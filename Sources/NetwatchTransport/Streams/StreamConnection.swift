internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A TCP connection for arbitrary bytes, on the engine's thread.
///
/// Reads run one after the other, and so do writes, but reads and writes do not wait for each other. Every completion
/// is called exactly once, on the engine's thread, and must not block it. Pending operations retain the connection.
/// Without any, it is closed when its last reference is released.
package actor StreamConnection {
    /// The number of a read or a write.
    package typealias Number = Int

    enum Phase {
        case idle
        case resolving
        case connecting
        case open(TCPSocket)
        /// Ended with this failure; `nil` after both sides were closed regularly.
        case ended(TransferFailure?)
    }

    /// The maximum number of bytes per receive, so that one fast connection does not delay the others.
    private static let chunk = 1 << 16

    nonisolated let loop: EventLoop
    nonisolated let resolver: NameResolver
    nonisolated let winners: ConnectionWinners
    nonisolated let host: String
    nonisolated let port: Int
    nonisolated let connectTimeout: Duration
    private nonisolated let numbers = Mutex(0)
    /// Why the engine has no thread. Every read and write then fails immediately with it.
    private nonisolated let startFailure: TransferFailure?
    private let whenEnded: @Sendable () -> Void

    var phase = Phase.idle
    var lookup: NameResolver.Lookup?
    var connector: Connector?
    var connectTimer: EventLoop.Timer?
    private var isSuspended = false
    private var reads = StreamReads()
    private var writes = StreamWrites()
    private var registration: EventLoop.Registration?
    private var interest: EventLoop.Interest = []

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        to host: String,
        port: Int,
        connectTimeout: Duration,
        loop: EventLoop,
        resolver: NameResolver,
        winners: ConnectionWinners,
        failure: TransferFailure? = nil,
        whenEnded: @escaping @Sendable () -> Void
    ) {
        self.host = host
        self.port = port
        self.connectTimeout = connectTimeout
        self.loop = loop
        self.resolver = resolver
        self.winners = winners
        startFailure = failure
        self.whenEnded = whenEnded
    }

    // MARK: From any thread

    /// Starts connecting, unless the connection was started or suspended before.
    package nonisolated func start() {
        perform { connection in
            if !connection.isSuspended { connection.begin() }
        }
    }

    /// Starts connecting, or continues after ``suspend()``.
    package nonisolated func resume() {
        perform { connection in
            connection.isSuspended = false
            connection.begin()
            connection.advance()
        }
    }

    /// Pauses reads and writes. Connecting continues, and timeouts keep running.
    package nonisolated func suspend() {
        perform { connection in
            connection.isSuspended = true
            connection.advance()
        }
    }

    /// Ends everything with code 42. Has no effect after the end.
    package nonisolated func cancel() {
        perform { $0.end($0.interruption(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
    }

    /// Reads at least `minimum` bytes, unless the stream ends before, and at most `maximum` bytes.
    ///
    /// - Parameters:
    ///   - minimum: 0 or more, and at most `maximum`. 0 counts as 1.
    ///   - maximum: 1 or more.
    ///   - timeout: The time allowed from now; `nil` for no limit. Bytes received until then are kept for the next
    ///     read.
    @discardableResult
    package nonisolated func read(
        atLeast minimum: Int,
        atMost maximum: Int,
        timeout: Duration?,
        completion: @escaping @Sendable (StreamRead) -> Void
    ) -> Number {
        if let startFailure {
            completion(StreamRead(bytes: [], isAtEnd: false, failure: startFailure))
            return 0
        }
        guard minimum >= 0, maximum >= max(1, minimum) else {
            let refusal = TransferFailure.refusedArgument(
                "cannot read at least \(minimum) and at most \(maximum) bytes; accepted are 0 or more, and 1 or more"
            )
            return enqueue { _, _ in completion(StreamRead(bytes: [], isAtEnd: false, failure: refusal)) }
        }
        return enqueue { connection, number in
            let timer = connection.timer(timeout, number)
            let read = StreamReads.Read(number: number, minimum: max(1, minimum), maximum: maximum) {
                connection.stop(timer)
                completion($0)
            }
            connection.append(read)
        }
    }

    /// Sends bytes. The completion is called when the kernel has accepted all of them.
    ///
    /// - Parameter timeout: The time allowed from now; `nil` for no limit. If it expires after some but not all of the
    ///   bytes were sent, the connection ends: the peer would take later bytes for the rest of these.
    @discardableResult
    package nonisolated func write(
        _ bytes: [UInt8],
        timeout: Duration?,
        completion: @escaping @Sendable (TransferFailure?) -> Void
    ) -> Number {
        if let startFailure {
            completion(startFailure)
            return 0
        }
        return enqueue { connection, number in
            let timer = connection.timer(timeout, number)
            let write = StreamWrites.Write(number: number, rest: bytes[...]) {
                connection.stop(timer)
                completion($0)
            }
            connection.append(write)
        }
    }

    /// Cancels a read or a write that has not ended. The effect is that of its timeout, but with code 42.
    package nonisolated func giveUp(_ number: Number) {
        perform { $0.giveUp(number, $0.interruption(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
    }

    /// Closes the reading side after the reads so far. The peer is not notified.
    package nonisolated func closeRead() {
        enqueue { connection, number in
            connection.reads.appendClose(number: number)
            connection.advance()
        }
    }

    /// Closes the writing side after the writes so far. The peer then reads the end of the stream.
    package nonisolated func closeWrite() {
        enqueue { connection, number in
            connection.writes.appendClose(number: number)
            connection.advance()
        }
    }

    nonisolated func perform(_ body: @escaping @Sendable (isolated StreamConnection) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    /// Numbers are assigned under the lock, so that they increase in the order in which the loop runs the operations.
    @discardableResult
    private nonisolated func enqueue(
        _ body: @escaping @Sendable (isolated StreamConnection, Number) -> Void
    ) -> Number {
        numbers.withLock { last in
            last += 1
            let number = last
            perform { body($0, number) }
            return number
        }
    }

    // MARK: Reads and writes

    private func append(_ read: StreamReads.Read) {
        if case .ended(let failure?) = phase {
            return read.finish(StreamRead(bytes: [], isAtEnd: false, failure: failure))
        }
        reads.append(read)
        advance()
    }

    private func append(_ write: StreamWrites.Write) {
        if case .ended(let failure?) = phase { return write.finish(failure) }
        writes.append(write)
        advance()
    }

    private func timer(_ timeout: Duration?, _ number: Number) -> EventLoop.Timer? {
        guard let timeout else { return nil }
        return loop.schedule(at: .now + timeout) {
            self.assumeIsolated {
                $0.giveUp(number, $0.interruption(CURLE_OPERATION_TIMEDOUT, "timed out"))
            }
        }
    }

    private nonisolated func stop(_ timer: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
    }

    private func giveUp(_ number: Number, _ failure: TransferFailure) {
        if let read = reads.giveUp(number) {
            read.finish(StreamRead(bytes: [], isAtEnd: false, failure: failure))
        } else if let write = writes.giveUp(number) {
            write.finish(failure)
            if write.isBegun { return end(failure) }
        }
        advance()
    }

    private func interruption(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(
            code: Int32(code.rawValue),
            phase: progress,
            bytesSent: writes.sentBytes,
            message: message
        )
    }

    private var progress: TransferFailure.Phase {
        switch phase {
        case .idle: .prepare
        case .resolving: .resolve
        case .connecting: .connect
        case .open, .ended: .response
        }
    }

    // MARK: The open connection

    /// Finishes the operations that can be finished, and watches the socket for the others.
    func advance() {
        switch phase {
        case .open(let socket):
            if !isSuspended { settle(socket) }
            if reads.isDone, writes.isDone { return end(nil) }
            wait(for: socket)
        case .ended(nil): settle(nil)
        default: break
        }
    }

    private func settle(_ socket: TCPSocket?) {
        while let step = reads.next() {
            switch step {
            case .finish(let read, let outcome): read.finish(outcome)
            case .close: socket?.shutDown(Int(SHUT_RD))
            }
        }
        while let step = writes.next() {
            switch step {
            case .finish(let write, let failure): write.finish(failure)
            case .close: socket?.shutDown(Int(SHUT_WR))
            }
        }
    }

    private func wait(for socket: TCPSocket) {
        var wanted: EventLoop.Interest = []
        if !isSuspended, reads.room > 0 { wanted.insert(.read) }
        if !isSuspended, writes.pending != nil { wanted.insert(.write) }
        guard wanted != interest else { return }
        do throws(SystemError) {
            try watch(socket, for: wanted)
        } catch {
            end(.lost(error, bytesSent: writes.sentBytes))
        }
    }

    /// Watches a socket for the given events. Without any, the socket is unregistered: epoll(7) reports errors and
    /// hang-ups always, and repeatedly.
    private func watch(_ socket: TCPSocket, for wanted: EventLoop.Interest) throws(SystemError) {
        interest = wanted
        guard !wanted.isEmpty else { return unwatch() }
        if let registration { return try loop.update(registration, to: wanted) }
        registration = try loop.register(socket.descriptor, for: wanted) { _ in
            self.assumeIsolated { $0.isReady(socket) }
        }
    }

    private func unwatch() {
        if let registration { loop.unregister(registration) }
        registration = nil
        interest = []
    }

    /// Handles readiness. The calls find out what happened, whatever event was reported. Reading comes first, because
    /// data that arrived before a reset can still be read.
    private func isReady(_ socket: TCPSocket) {
        do throws(SystemError) {
            if interest.contains(.read) { try receive(from: socket) }
            if interest.contains(.write) { try send(to: socket) }
            advance()
        } catch {
            end(.lost(error, bytesSent: writes.sentBytes))
        }
    }

    private func receive(from socket: TCPSocket) throws(SystemError) {
        // An empty result means the end of the stream, so zero bytes must never be requested.
        guard reads.room > 0 else { return }
        do throws(SystemError) {
            reads.received(try socket.receive(atMost: min(reads.room, Self.chunk)))
        } catch  where error.errno == EAGAIN {
            // The socket was ready for writing only.
        }
    }

    private func send(to socket: TCPSocket) throws(SystemError) {
        guard let bytes = writes.pending else { return }
        do throws(SystemError) {
            writes.sent(try socket.send(bytes))
        } catch  where error.errno == EAGAIN {
            // The socket was ready for reading only.
        }
    }

    // MARK: The end

    func end(_ failure: TransferFailure?) {
        if case .ended = phase { return }
        phase = .ended(failure)
        stopConnecting()
        unwatch()
        if let failure {
            for (read, outcome) in reads.fail(failure) { read.finish(outcome) }
            for write in writes.removeAll() { write.finish(failure) }
        }
        whenEnded()
    }
}
