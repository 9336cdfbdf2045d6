public import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import Synchronization

/// A TCP connection for bytes of any kind, in both directions.
///
/// Reads are done one after the other, in the order of the calls, and so are writes, but neither wait for the
/// other. Only what is read is received: a server that sends more has to wait. There is no TLS.
///
/// Every completion is called exactly once, whatever happens to the stream or its session, on the stream's
/// own serial queue. All functions may be called from any thread.
///
/// The session keeps a stream until it has ended: by ``cancel()``, by an error of the connection, or once both
/// sides are closed, the writing one by ``closeWrite()``, the reading one by ``closeRead()`` or by the other
/// side. What is still waiting then, and what comes later, gets the error.
///
/// Unlike other requests it is no ``Request``: there is no HTTP in it, so it has neither `URLRequest` nor
/// response, and adapters, retriers and event monitors do not hear of it.
public final class StreamRequest: SessionWork {
    let identifier: Int
    private let connection: StreamConnection
    private let queue: SerialQueue
    /// Why it was ended by this side, when not by ``cancel()``.
    private let reason = Mutex<AFError?>(nil)

    init(_ hostName: String, _ port: Int, _ context: SessionContext) {
        let identifier = context.nextIdentifier()
        let queue = SerialQueue()
        self.identifier = identifier
        self.queue = queue
        connection = context.engine.stream(to: hostName, port: port) {
            // After the completions, so that they find the session keeping the stream still.
            queue.async { context.remove(identifier) }
        }
    }

    // MARK: Control

    /// Connects, or goes on after ``suspend()``.
    ///
    /// Only needed then, or when the session's ``SessionManager/startRequestsImmediately`` is false.
    @discardableResult
    public func resume() -> Self {
        connection.resume()
        return self
    }

    /// Lets reads and writes stand still until ``resume()``. A connection that is being made is made all the
    /// same, and timeouts go on.
    @discardableResult
    public func suspend() -> Self {
        connection.suspend()
        return self
    }

    /// Closes the connection, unless the stream has ended: what is waiting gets `URLError.cancelled`.
    @discardableResult
    public func cancel() -> Self {
        connection.cancel()
        return self
    }

    // MARK: Reading

    /// Reads bytes, after the reads before it.
    ///
    /// - Parameters:
    ///   - minBytes: How many at least, unless the other side closes before. 0 counts as 1.
    ///   - maxBytes: How many at most; at least 1, and not below `minBytes`. Other values are refused with an
    ///     error whose ``Swift/Error/transferFailure`` names them.
    ///   - timeout: In seconds, from now. A read that takes longer gets `URLError.timedOut`, and what has come
    ///     for it goes to the next. 0 and below: no timeout.
    ///   - completionHandler: Gets the bytes, whether the other side has closed and these are the last, and
    ///     the error. Without an error there are always data, at the end perhaps empty. Beside an error of the
    ///     connection there may be: what had come before.
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

    /// Reads bytes, after the reads before it; see
    /// ``readData(ofMinLength:maxLength:timeout:completionHandler:)``.
    ///
    /// Starts the stream if nobody has. Cancelling the waiting task gives the read up; what has come for it
    /// goes to the next.
    ///
    /// - Returns: The bytes, and whether the other side has closed and these are the last.
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

    /// Closes the reading side after the reads so far; later ones get an error. The other side is not told,
    /// but loses the connection when it sends after both sides were closed here.
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

    /// Sends bytes, after the writes before it.
    ///
    /// - Parameters:
    ///   - data: What to send. It is kept until then; waiting for the completion bounds the memory.
    ///   - timeout: In seconds, from now. A write that takes longer gets `URLError.timedOut`. If some of it was
    ///     sent, the stream ends, because what followed would be taken for the rest. 0 and below: no timeout.
    ///   - completionHandler: Called once the kernel has taken all of it, which is no word from the other side.
    @preconcurrency
    public func write(
        _ data: Data,
        timeout: TimeInterval,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        write(data, timeout, completionHandler)
    }

    /// Sends bytes, after the writes before it; see ``write(_:timeout:completionHandler:)``.
    ///
    /// Starts the stream if nobody has. Cancelling the waiting task does what a timeout does.
    ///
    /// - Throws: `URLError`, ``AFError/sessionDeinitialized``.
    public func write(_ data: Data, timeout: TimeInterval = 0) async throws {
        connection.start()
        try await perform { finish in
            self.write(data, timeout) { finish(Result($0) {}) }
        }
    }

    /// Closes the writing side after the writes so far, so that the other side reads the end; later ones get an
    /// error.
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

    // MARK: Waiting, and the end

    /// Waits for a read or a write, which is given up when the waiting task is cancelled, and not begun when
    /// it was before.
    private func perform<Value: Sendable>(
        _ begin: @Sendable (@escaping @Sendable (Result<Value, any Error>) -> Void) -> StreamConnection.Number
    ) async throws -> Value {
        let work = AbandonableWork(connection)
        return try await withTaskCancellationHandler {
            guard !work.isAbandoned else { throw URLError(.cancelled) }
            return try await withCheckedThrowingContinuation { continuation in
                work.begin(as: begin { continuation.resume(with: $0) })
            }
        } onCancel: {
            work.giveUp()
        }
    }

    func sessionDropped() { end(because: .sessionDeinitialized) }

    func end(because error: AFError) {
        reason.withLock { $0 = $0 ?? error }
        connection.cancel()
    }

    private func error(of failure: TransferFailure?) -> (any Error)? {
        // CURLE_ABORTED_BY_CALLBACK: this side has ended it.
        if failure?.code == 42, let reason = reason.withLock({ $0 }) { return reason }
        return failure?.error(for: nil)
    }
}

/// A read or a write that may be given up before its number is known.
private final class AbandonableWork: Sendable {
    private struct State {
        var number: StreamConnection.Number?
        var isAbandoned = false
    }

    private let connection: StreamConnection
    private let state = Mutex(State())

    init(_ connection: StreamConnection) { self.connection = connection }

    var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

    func begin(as number: StreamConnection.Number) {
        let isAbandoned = state.withLock { state in
            state.number = number
            return state.isAbandoned
        }
        if isAbandoned { connection.giveUp(number) }
    }

    func giveUp() {
        let number = state.withLock { state in
            state.isAbandoned = true
            return state.number
        }
        if let number { connection.giveUp(number) }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ error: (any Error)?, _ value: () -> Success) {
        self = error.map(Result.failure) ?? .success(value())
    }
}

extension Duration {
    /// `nil` for no timeout.
    fileprivate init?(timeoutInterval: TimeInterval) {
        guard timeoutInterval > 0 else { return nil }
        self.init(seconds: timeoutInterval)
    }
}
