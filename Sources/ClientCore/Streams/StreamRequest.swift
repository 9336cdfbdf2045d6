public import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// A TCP connection that sends and receives raw bytes.
///
/// ```swift
/// let stream = session.stream(withHostName: "example.com", port: 7)
/// try await stream.write(Data("hello".utf8))
/// stream.closeWrite()
/// let (data, isAtEnd) = try await stream.readData(maxLength: 4096, timeout: 10)
/// print(data.count, isAtEnd)
/// ```
///
/// Reads run one after another, in the order of the calls. The same applies to writes. Reads and writes do not wait for
/// each other. The stream receives bytes only while a read is pending. If the peer sends more than the reads ask for,
/// it must wait. TLS is not supported.
///
/// Every completion is called exactly once, on the stream's own serial queue, even if the stream or its session
/// ends. All functions may be called from any thread.
///
/// The session retains a stream until the stream has ended. A stream ends in one of these ways:
///
/// - by ``cancel()``, or when its session is released
/// - by an error of the connection
/// - when both sides are closed: the writing side by ``closeWrite()``, the reading side by ``closeRead()`` or by the
///   peer
///
/// Reads and writes that are pending at the end, or are submitted later, fail.
///
/// A stream is not a ``Request``, because it does not use HTTP: it has no `URLRequest` and no response. Adapters,
/// retriers and event monitors are not called for streams.
public final class StreamRequest: SessionTask {
    let identifier: Int
    private let connection: StreamConnection
    private let queue: SerialQueue
    /// The error with which the session ended the stream; `nil` if it did not.
    private let reason = Lock<AFError?>(nil)

    init(_ hostName: String, _ port: Int, _ context: SessionContext) {
        let identifier = context.nextIdentifier()
        let queue = SerialQueue(context.threads)
        self.identifier = identifier
        self.queue = queue
        connection = context.engine.stream(to: hostName, port: port) {
            // Submitted to the queue, so that the session retains the stream until all completions were called.
            queue.async { context.remove(identifier) }
        }
    }

    // MARK: Control

    /// Connects, or continues after ``suspend()``.
    ///
    /// Call this function only after ``suspend()``, or if the session's ``SessionManager/startRequestsImmediately`` is
    /// false. Otherwise the stream starts by itself.
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
    ///   - minBytes: The minimum number of bytes to wait for. 0 counts as 1. Fewer bytes are returned only if the peer
    ///     closes the connection.
    ///   - maxBytes: The maximum number of bytes: at least 1, and not less than `minBytes`. For other values the read
    ///     fails with an error whose ``Swift/Error/transferFailure`` names the values.
    ///   - timeout: The time limit in seconds, counted from this call. A value of 0 or below means no limit. A read
    ///     that takes longer fails with `URLError.timedOut`, and the next read receives the bytes that have arrived.
    ///   - completionHandler: Receives three values:
    ///     - the bytes. Without an error they are never `nil`, but may be empty at the end. With a connection error,
    ///       they are the bytes that arrived before the error, or `nil`.
    ///     - whether these bytes are the last, because the peer has closed the connection
    ///     - the error; `nil` for a success
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
    /// - Returns: The bytes, and whether they are the last, because the peer has closed the connection.
    /// - Throws: `URLError`, or ``AFError/sessionDeinitialized`` if the session was released.
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

    /// Closes the reading side after the reads that were submitted before this call. Later reads fail. The peer is not
    /// notified. If it sends bytes after both sides of this stream were closed, its connection is reset.
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
    ///   - data: The bytes to send. They are kept in memory until they are sent. To limit the memory, wait for the
    ///     completion before the next write.
    ///   - timeout: The time limit in seconds, counted from this call. A value of 0 or below means no limit. A write
    ///     that takes longer fails with `URLError.timedOut`. If part of the bytes was already sent, the stream ends,
    ///     because the peer would mistake later bytes for the rest.
    ///   - completionHandler: Called when the kernel has accepted all bytes, which the peer may not have received yet,
    ///     or with the error.
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
    /// Starts the stream if it has not been started. Cancelling the waiting task cancels the write. If part of the
    /// bytes was already sent, the stream ends, as after a timeout.
    ///
    /// - Throws: `URLError`, or ``AFError/sessionDeinitialized`` if the session was released.
    public func write(_ data: Data, timeout: TimeInterval = 0) async throws {
        connection.start()
        try await perform { finish in
            self.write(data, timeout) { finish(Result($0) {}) }
        }
    }

    /// Closes the writing side after the writes that were submitted before this call. The peer then reads the end of
    /// the stream. Later writes fail.
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

    /// Runs a read or a write, and waits for it. Cancelling the waiting task cancels the operation. If the task was
    /// already cancelled, the operation is not started.
    private func perform<Value: Sendable>(
        _ begin: @Sendable (@escaping @Sendable (Result<Value, any Error>) -> Void) -> StreamConnection.Number
    ) async throws -> Value {
        let operation = CancellableOperation(connection)
        return try await withTaskCancellationHandler {
            guard !operation.isCancelled else {
                throw URLError(.cancelled, message: "the operation was cancelled")
            }
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
        // 42 is CURLE_ABORTED_BY_CALLBACK: the program or the session has ended the stream.
        if failure?.code == 42, let reason = reason.withLock({ $0 }) { return reason }
        return failure?.error(for: nil)
    }
}

/// A read or a write that may be cancelled before the connection has returned its number.
private final class CancellableOperation: Sendable {
    private struct State {
        var number: StreamConnection.Number?
        var isCancelled = false
    }

    private let connection: StreamConnection
    private let state = Lock(State())

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

extension Duration {
    /// Converts a timeout in seconds. Returns `nil` for 0 and below, which mean no timeout.
    fileprivate init?(timeoutInterval: TimeInterval) {
        guard timeoutInterval > 0 else { return nil }
        self.init(seconds: timeoutInterval)
    }
}

extension SessionManager {
    /// Opens a TCP connection for raw bytes.
    ///
    /// The name is resolved and its addresses are tried in order. The next address is tried after 250 ms, or as soon as
    /// the previous address has failed (RFC 8305 §5). If there is no connection after 15 s in total, the stream fails
    /// with `URLError.timedOut`.
    ///
    /// The session's configuration does not apply to streams, with one exception: a session that refuses all requests
    /// because of its configuration also refuses streams. A session for a unix socket refuses streams, too.
    ///
    /// - Parameters:
    ///   - hostName: An ASCII host name or an IP address; IPv6 without brackets.
    ///   - port: 1 to 65535. Other values end the stream with `URLError.badURL`.
    @discardableResult
    public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
        let stream = StreamRequest(hostName, port, context)
        context.add(stream)
        if let refusal = context.settings.streamRefusal {
            stream.end(because: .sessionConfigurationRefused(property: refusal))
        } else if context.hooks.startsImmediately {
            stream.resume()
        }
        return stream
    }
}

extension SessionSettings {
    fileprivate var streamRefusal: String? {
        refusal ?? unixSocketPath.map { "`\($0)` is a unix socket, but streams use TCP" }
    }
}
