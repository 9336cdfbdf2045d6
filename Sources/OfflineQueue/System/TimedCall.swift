package import Dispatch
internal import NetwatchEventLoop

/// Runs a call that may never return.
enum TimedCall {
    /// The error of a call that did not return in time.
    struct Timeout: Error {}

    /// Runs `body` and returns its result, but waits no longer than `limit`.
    ///
    /// After the limit, or if the task is cancelled, `body` is cancelled but not waited for.
    ///
    /// - Throws: ``Timeout``, `CancellationError`, or the error of `body`.
    static func run<Value: Sendable>(
        within limit: Duration,
        clock: some Clock<Duration> = ContinuousClock(),
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let result = FirstResult<Value>()
        let call = Task {
            do {
                result.set(.success(try await body()))
            } catch {
                result.set(.failure(error))
            }
        }
        let timer = Task {
            guard (try? await Task.sleep(for: limit, clock: clock)) != nil else { return }
            result.set(.failure(Timeout()))
        }
        defer {
            timer.cancel()
            call.cancel()
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { result.wait($0) }
        } onCancel: {
            result.set(.failure(CancellationError()))
        }
    }
}

/// The first of several results. Later ones are ignored.
private final class FirstResult<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value, any Error>)
        case set(Result<Value, any Error>)
        case taken
    }

    private let state = Lock(State.open)

    func set(_ result: Result<Value, any Error>) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            switch state {
            case .open: state = .set(result)
            case .waiting(let waiter):
                state = .taken
                return waiter
            case .set, .taken: break
            }
            return nil
        }
        waiter?.resume(with: result)
    }

    func wait(_ continuation: CheckedContinuation<Value, any Error>) {
        let result = state.withLock { state -> Result<Value, any Error>? in
            if case .set(let result) = state {
                state = .taken
                return result
            }
            state = .waiting(continuation)
            return nil
        }
        if let result { continuation.resume(with: result) }
    }
}

extension DispatchQueue {
    /// Runs blocking work on this queue, and returns its result. Code that waits for the disk must not block a thread
    /// of the cooperative pool.
    ///
    /// The work is submitted before the caller's actor runs anything else. Calls from the same actor therefore run in
    /// their order on a serial queue.
    package func run<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation { continuation in
            async { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}
