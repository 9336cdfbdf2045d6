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

    private enum Phase {
        case idle
        case resolving
        case connecting
        case open(StreamSocket)
        /// Ended with this failure; `nil` after both sides were closed regularly.
        case ended(TransferFailure?)
    }

    private nonisolated let loop: EventLoop
    private let resolver: NameResolver
    private let preferredAddresses: PreferredAddresses
    private let host: String
    private let port: Int
    private let connectTimeout: Duration
    private nonisolated let numbers = Mutex(0)
    /// Why the engine has no thread. Every read and write then fails immediately with it.
    private nonisolated let startFailure: TransferFailure?
    private let whenEnded: @Sendable () -> Void

    private var phase = Phase.idle
    private var connector: HostConnector?
    private var isSuspended = false
    private var reads = StreamReads()
    private var writes = StreamWrites()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        to host: String,
        port: Int,
        connectTimeout: Duration,
        loop: EventLoop,
        resolver: NameResolver,
        preferredAddresses: PreferredAddresses,
        failure: TransferFailure? = nil,
        whenEnded: @escaping @Sendable () -> Void
    ) {
        self.host = host
        self.port = port
        self.connectTimeout = connectTimeout
        self.loop = loop
        self.resolver = resolver
        self.preferredAddresses = preferredAddresses
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
                "cannot read at least \(minimum) and at most \(maximum) bytes: the minimum must be 0 or more, the maximum 1 or more and not below the minimum"
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
    package nonisolated func cancel(_ number: Number) {
        perform { $0.abort(number, $0.interruption(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
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

    private nonisolated func perform(_ body: @escaping @Sendable (isolated StreamConnection) -> Void) {
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
                $0.abort(number, $0.interruption(CURLE_OPERATION_TIMEDOUT, "timed out"))
            }
        }
    }

    private nonisolated func stop(_ timer: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
    }

    /// Ends a read or a write before its time.
    private func abort(_ number: Number, _ failure: TransferFailure) {
        if let read = reads.remove(number) {
            read.finish(StreamRead(bytes: [], isAtEnd: false, failure: failure))
        } else if let write = writes.remove(number) {
            write.finish(failure)
            if write.hasStarted { return end(failure) }
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

    // MARK: Connecting

    private func begin() {
        guard case .idle = phase else { return }
        guard (1...65535).contains(port) else {
            return end(
                TransferFailure(CURLE_URL_MALFORMAT, .prepare, "port \(port) is not between 1 and 65535")
            )
        }
        // The C string would end at the NUL, and netwatch would connect to another host.
        guard !host.isEmpty, !host.utf8.contains(0) else {
            return end(
                TransferFailure(CURLE_URL_MALFORMAT, .prepare, "the host name is empty or contains NUL")
            )
        }
        let connector = HostConnector(
            to: host,
            port: UInt16(port),
            loop: loop,
            resolver: resolver,
            preferredAddresses: preferredAddresses
        ) { event in
            self.assumeIsolated { $0.handle(event) }
        }
        self.connector = connector
        let literal = IPAddress(host)
        phase = literal == nil ? .resolving : .connecting
        connector.assumeIsolated { [connectTimeout] in
            // Unlike a transfer's, a stream's timeout includes the time for which its lookup waits for a thread.
            $0.start(timeout: connectTimeout, deadline: .now + connectTimeout)
            if let literal { $0.connect(to: [ConnectionCandidate(literal)]) } else { $0.lookUp() }
        }
    }

    private func handle(_ event: HostConnector.Event) {
        switch event {
        case .resolved(.success(let addresses)):
            phase = .connecting
            connector?.assumeIsolated { $0.connect(to: addresses.map { ConnectionCandidate($0) }) }
        case .resolved(.failure(let failure)): end(.noAddress(failure))
        case .lookupTimedOut(let hasStarted): end(.lookupTimedOut(hasStarted: hasStarted))
        case .connected(let connection):
            connector?.assumeIsolated { $0.prefer(connection.address) }
            connector = nil
            phase = .open(StreamSocket(connection.socket, loop))
            advance()
        case .failed(let failure): end(.notConnected(failure))
        case .connectTimedOut(let timeout, let failure): end(.connectTimedOut(after: timeout, failure))
        }
    }

    // MARK: The open connection

    /// Finishes the operations that can be finished, and watches the socket for the others.
    private func advance() {
        switch phase {
        case .open(let socket):
            if !isSuspended { completeOperations(socket) }
            if reads.isDone, writes.isDone { return end(nil) }
            watch(socket)
        case .ended(nil): completeOperations(nil)
        default: break
        }
    }

    private func completeOperations(_ socket: StreamSocket?) {
        while let step = reads.next() {
            switch step {
            case .finish(let read, let outcome): read.finish(outcome)
            case .close: socket?.shutDown(SHUT_RD)
            }
        }
        while let step = writes.next() {
            switch step {
            case .finish(let write, let failure): write.finish(failure)
            case .close: socket?.shutDown(SHUT_WR)
            }
        }
    }

    /// Watches the socket for the events that the pending operations need.
    private func watch(_ socket: StreamSocket) {
        var interest: EventLoop.Interest = []
        if !isSuspended, reads.capacity > 0 { interest.insert(.read) }
        if !isSuspended, writes.pending != nil { interest.insert(.write) }
        do throws(SystemError) {
            try socket.watch(for: interest) { self.assumeIsolated { $0.socketIsReady() } }
        } catch {
            end(.lost(error, bytesSent: writes.sentBytes))
        }
    }

    /// Handles readiness. The calls find out what happened, whatever event was reported. Reading comes first, because
    /// data that arrived before a reset can still be read.
    private func socketIsReady() {
        guard case .open(let socket) = phase else { return }
        do throws(SystemError) {
            if socket.interest.contains(.read), reads.capacity > 0,
                let bytes = try socket.receive(atMost: reads.capacity)
            {
                reads.received(bytes)
            }
            if socket.interest.contains(.write), let bytes = writes.pending,
                let count = try socket.send(bytes)
            {
                writes.sent(count)
            }
            advance()
        } catch {
            end(.lost(error, bytesSent: writes.sentBytes))
        }
    }

    // MARK: The end

    private func end(_ failure: TransferFailure?) {
        if case .ended = phase { return }
        if case .open(let socket) = phase { socket.unwatch() }
        phase = .ended(failure)
        connector?.assumeIsolated { _ = $0.stop() }
        connector = nil
        if let failure {
            for (read, outcome) in reads.fail(failure) { read.finish(outcome) }
            for write in writes.removeAll() { write.finish(failure) }
        }
        whenEnded()
    }
}
