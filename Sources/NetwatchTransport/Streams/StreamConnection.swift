internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A TCP connection for arbitrary bytes. It runs on the engine's thread.
///
/// Reads run one after the other, and so do writes. A read and a write can run at the same time. Each completion is
/// called exactly once on the engine's thread, so it must not block.
///
/// A pending read or write retains the connection. If none is pending, releasing the last reference closes the
/// connection.
package actor StreamConnection {
    /// The identifier of a read or write, for ``cancel(_:)``.
    package typealias Number = Int

    private enum Phase {
        case idle
        case resolving
        case connecting
        case open(StreamSocket)
        /// The connection has ended with this failure; `nil` if both sides were closed regularly.
        case ended(TransferFailure?)
    }

    private nonisolated let loop: EventLoop
    private let resolver: NameResolver
    private let preferredAddresses: PreferredAddresses
    private let host: String
    private let port: Int
    private let connectTimeout: Duration
    private nonisolated let numbers = Lock(0)
    /// The reason why the engine could not start its thread. Every read and write then fails immediately with this
    /// failure.
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

    /// Begins to connect. Has no effect if the connection has already begun, or is suspended.
    package nonisolated func start() {
        perform { connection in
            if !connection.isSuspended { connection.begin() }
        }
    }

    /// Ends a suspension, and begins to connect if that has not happened yet.
    package nonisolated func resume() {
        perform { connection in
            connection.isSuspended = false
            connection.begin()
            connection.advance()
        }
    }

    /// Suspends reads and writes until ``resume()``. The connection attempts continue, and timeouts keep running.
    package nonisolated func suspend() {
        perform { connection in
            connection.isSuspended = true
            connection.advance()
        }
    }

    /// Cancels the connection and all pending reads and writes, which fail with code 42. Has no effect after the end.
    package nonisolated func cancel() {
        perform { $0.end($0.interruption(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
    }

    /// Reads at least `minimum` and at most `maximum` bytes. At the end of the stream there may be fewer.
    ///
    /// - Parameters:
    ///   - minimum: The minimum number of bytes, from 0 to `maximum`. 0 has the same effect as 1.
    ///   - maximum: The maximum number of bytes, 1 or more.
    ///   - timeout: The time limit, from now; `nil` for none. After a timeout, the bytes received until then are kept
    ///     for the next read.
    ///   - completion: Receives the result.
    /// - Returns: The identifier of this read; 0 if the engine could not start its thread.
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

    /// Sends bytes.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to send.
    ///   - timeout: The time limit, from now; `nil` for none. If it expires after a part of the bytes was sent, the
    ///     connection ends, because the peer would take later bytes for the rest of these.
    ///   - completion: Called with `nil` when the kernel has accepted all bytes, or with the failure.
    /// - Returns: The identifier of this write; 0 if the engine could not start its thread.
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

    /// Cancels a read or write, which fails with code 42. Apart from the code, this has the same effect as its timeout.
    /// Has no effect after the end of the read or write.
    package nonisolated func cancel(_ number: Number) {
        perform { $0.abort(number, $0.interruption(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
    }

    /// Closes the reading side when the reads requested so far have ended. The peer is not notified.
    package nonisolated func closeRead() {
        enqueue { connection, number in
            connection.reads.appendClose(number: number)
            connection.advance()
        }
    }

    /// Closes the writing side when the writes requested so far have ended. The peer then reads the end of the stream.
    package nonisolated func closeWrite() {
        enqueue { connection, number in
            connection.writes.appendClose(number: number)
            connection.advance()
        }
    }

    private nonisolated func perform(_ body: @escaping @Sendable (isolated StreamConnection) -> Void) {
        loop.execute(on: self, body)
    }

    /// Assigns the next number to an operation and schedules it. Both happen under the lock, so that the loop runs the
    /// operations in the order of their numbers.
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
        return loop.scheduleLimit(timeout) {
            self.assumeIsolated {
                $0.abort(number, $0.interruption(CURLE_OPERATION_TIMEDOUT, "timed out"))
            }
        }
    }

    private nonisolated func stop(_ timer: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
    }

    /// Ends a pending read or write with a failure. Ends the connection if a part of the write was already sent.
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
        // A C string ends at its first NUL, so the resolver would look up another host.
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
            // A stream's timeout includes the time for which its lookup waits for a resolver thread. A transfer's does
            // not.
            $0.start(timeout: connectTimeout, deadline: .now + connectTimeout)
            if let literal { $0.connect(to: [ConnectionCandidate(literal)]) } else { $0.lookUp() }
        }
    }

    private func handle(_ event: HostConnector.Event) {
        switch event {
        case .resolved(.success(let addresses)):
            phase = .connecting
            connector?.assumeIsolated { $0.connect(to: addresses.map { ConnectionCandidate($0) }) }
        case .resolved(.failure(let failure)): end(.unresolved(host, failure))
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

    /// Completes the reads and writes that can be completed, and watches the socket for the others.
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

    /// Watches the socket for the events that the pending reads and writes need.
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

    /// Reads and writes as much as possible. It does not need the reported events, because the system calls return what
    /// has happened. It reads first, because data that arrived before a reset can still be read.
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
