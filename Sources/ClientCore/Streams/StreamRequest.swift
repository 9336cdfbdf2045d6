public import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import Synchronization

/// A TCP connection that sends and receives raw bytes.
///
/// Reads run one after another, in the order of the calls. So do writes. Reads and writes do not wait for each
/// other. Only bytes that are read are received: a server that sends more must wait. TLS is not supported.
///
/// Every completion is called exactly once, on the stream's own serial queue, even if the stream or its session
/// ends. All functions may be called from any thread.
///
/// The session retains a stream until it has ended. It ends by ``cancel()``, by an error of the connection, or
/// when both sides are closed: the writing side by ``closeWrite()``, the reading side by ``closeRead()`` or by the
/// peer. Pending and later reads and writes then receive the error.
///
/// A stream is not a ``Request``, because it does not use HTTP. It has no `URLRequest` and no response, and
/// adapters, retriers and event monitors do not see it.
public final class StreamRequest: SessionTask {
    let identifier: Int
    private let connection: StreamConnection
    private let queue: SerialQueue
    /// Why this side ended the stream, if not by ``cancel()``.
    private let reason = Mutex<AFError?>(nil)

    init(_ hostName: String, _ port: Int, _ context: SessionContext) {
        let identifier = context.nextIdentifier()
        let queue = SerialQueue()
        self.identifier = identifier
        self.queue = queue
        connection = context.engine.stream(to: hostName, port: port) {
            // After the completions: while they run, the session still retains the stream.
            queue.async { context.remove(identifier) }
        }
    }

    // MARK: Control

    /// Connects, or continues after ``suspend()``.
    ///
    /// Only needed after ``suspend()``, or when the session's ``SessionManager/startRequestsImmediately`` is
    /// false.
    @discardableResult
    public func resume() -> Self {
        connection.resume()
        return self
    }

    /// Pauses reads and writes until ``resume()``. A connection attempt in progress continues, and timeouts keep
    /// running.
    @discardableResult
    public func suspend() -> Self {
        connection.suspend()
        return self
    }

    /// Closes the connection. Pending reads and writes receive `URLError.cancelled`. Does nothing if the stream
    /// has ended.
    @discardableResult
    public func cancel() -> Self {
        connection.cancel()
        return self
    }

    // MARK: Reading

    /// Reads bytes, after earlier reads have completed.
    ///
    /// - Parameters:
    ///   - minBytes: The minimum number of bytes, unless the peer closes before. 0 counts as 1.
    ///   - maxBytes: The maximum number of bytes: at least 1, and not less than `minBytes`. Other values fail
    ///     with an error whose ``Swift/Error/transferFailure`` names them.
    ///   - timeout: In seconds, from now. A read that takes longer fails with `URLError.timedOut`, and the next
    ///     read receives the bytes that have arrived. Values of 0 and below mean no timeout.
    ///   - completionHandler: Receives the bytes, whether they are the last because the peer has closed, and
    ///     the error. Without an error the data is never `nil`, but may be empty at the end. A connection error
    ///     may come with data: the bytes that arrived before it.
    @preconcurrency
    public func readData(
        ofMinLength minBytes: Int,
        maxLength maxBytes: Int,
        timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        read(minBytes, maxBytes, timeout) { read, error in
            let hasData = error == nil || !read.bytes.isEmpty
            completionHandler(hasData ? Data(read.bytes) : nil, read.isAtEnd, error)
        }
    }

    /// Reads bytes, after earlier reads have completed; see
    /// ``readData(ofMinLength:maxLength:timeout:completionHandler:)``.
    ///
    /// Starts the stream if it has not been started. Cancelling the waiting task cancels the read, and the next
    /// read receives the bytes that have arrived.
    ///
    /// - Returns: The bytes, and whether they are the last because the peer has closed.
    /// - Throws: `URLError`, ``AFError/sessionDeinitialized``.
    public func readData(
        ofMinLength minBytes: Int = 1,
        maxLength maxBytes: Int,
        timeout: TimeInterval = 0
    ) async throws -> (data: Data, isAtEnd: Bool) {
        connection.start()
        return try await perform { finish in
            self.read(minBytes, maxBytes, timeout) { read, error in
                finish(Result(error) { (Data(read.bytes), read.isAtEnd) })
            }
        }
    }

    /// Closes the reading side after the reads submitted so far. Later reads fail. The peer is not notified,
    /// but its connection is reset if it sends after both sides were closed here.
    public func closeRead() { connection.closeRead() }

    @discardableResult
    private func read(
        _ minBytes: Int,
        _ maxBytes: Int,
        _ timeout: TimeInterval,
        _ finish: @escaping @Sendable (StreamRead, (any Error)?) -> Void
    ) -> StreamConnection.Number {
        let timeout = Duration(timeoutInterval: timeout)
        return connection.read(atLeast: minBytes, atMost: maxBytes, timeout: timeout) { read in
            self.queue.async { finish(read, self.error(of: read.failure)) }
        }
    }

    // MARK: Writing

    /// Sends bytes, after earlier writes have completed.
    ///
    /// - Parameters:
    ///   - data: The bytes to send. They are kept in memory until sent. Wait for the completion to limit memory
    ///     use.
    ///   - timeout: In seconds, from now. A write that takes longer fails with `URLError.timedOut`. If part of
    ///     it was already sent, the stream ends, because the peer would take later bytes for the rest. Values
    ///     of 0 and below mean no timeout.
    ///   - completionHandler: Called when the kernel has accepted all bytes. The peer may not have received
    ///     them.
    @preconcurrency
    public func write(
        _ data: Data,
        timeout: TimeInterval,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        write(data, timeout, completionHandler)
    }

    /// Sends bytes, after earlier writes have completed; see ``write(_:timeout:completionHandler:)``.
    ///
    /// Starts the stream if it has not been started. Cancelling the waiting task has the effect of a timeout.
    ///
    /// - Throws: `URLError`, ``AFError/sessionDeinitialized``.
    public func write(_ data: Data, timeout: TimeInterval = 0) async throws {
        connection.start()
        try await perform { finish in
            self.write(data, timeout) { finish(Result($0) {}) }
        }
    }

    /// Closes the writing side after the writes submitted so far, so that the peer reads the end of the stream.
    /// Later writes fail.
    public func closeWrite() { connection.closeWrite() }

    @discardableResult
    private func write(
        _ data: Data,
        _ timeout: TimeInterval,
        _ finish: @escaping @Sendable ((any Error)?) -> Void
    ) -> StreamConnection.Number {
        connection.write(Array(data), timeout: Duration(timeoutInterval: timeout)) { failure in
            self.queue.async { finish(self.error(of: failure)) }
        }
    }

    // MARK: Waiting and ending

    /// Waits for a read or a write. Cancelling the waiting task cancels the operation. It is not started if the
    /// task was already cancelled.
    private func perform<Value: Sendable>(
        _ begin: @Sendable (@escaping @Sendable (Result<Value, any Error>) -> Void) -> StreamConnection.Number
    ) async throws -> Value {
        let operation = CancellableOperation(connection)
        return try await withTaskCancellationHandler {
            guard !operation.isCancelled else { throw URLError(.cancelled) }
            return try await withCheckedThrowingContinuation { continuation in
                operation.begin(as: begin { continuation.resume(with: $0) })
            }
        } onCancel: {
            operation.cancel()
        }
    }

    func sessionDropped() { end(because: .sessionDeinitialized) }

    func end(because error: AFError) {
        reason.withLock { $0 = $0 ?? error }
        connection.cancel()
    }

    private func error(of failure: TransferFailure?) -> (any Error)? {
        // CURLE_ABORTED_BY_CALLBACK: this side has ended the stream.
        if failure?.code == 42, let reason = reason.withLock({ $0 }) { return reason }
        return failure?.error(for: nil)
    }
}

/// A read or a write that may be cancelled before its number is known.
private final class CancellableOperation: Sendable {
    private struct State {
        var number: StreamConnection.Number?
        var isCancelled = false
    }

    private let connection: StreamConnection
    private let state = Mutex(State())

    init(_ connection: StreamConnection) { self.connection = connection }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func begin(as number: StreamConnection.Number) {
        let isCancelled = state.withLock { state in
            state.number = number
            return state.isCancelled
        }
        if isCancelled { connection.cancel(number) }
    }

    func cancel() {
        let number = state.withLock { state in
            state.isCancelled = true
            return state.number
        }
        if let number { connection.cancel(number) }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ error: (any Error)?, _ value: () -> Success) {
        self = error.map(Result.failure) ?? .success(value())
    }
}

extension Duration {
    /// Returns `nil` for no timeout.
    fileprivate init?(timeoutInterval: TimeInterval) {
        guard timeoutInterval > 0 else { return nil }
        self.init(seconds: timeoutInterval)
    }
}
