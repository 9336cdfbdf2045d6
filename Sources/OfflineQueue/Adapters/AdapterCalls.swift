internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// The calls of the adapter and the interceptor of the queue's session.
///
/// Both are code of the program and may never return. An attempt therefore waits for them only for a limited time, and
/// then its request is postponed. The calls that have not returned are limited, because a blocked adapter occupies a
/// thread: while one is overdue, no other request to its host is adapted.
final class AdapterCalls: Sendable {
    /// The maximum number of overdue calls. While there are so many, no request is adapted.
    static let maximumOverdue = 16
    /// The time after which a request is tried again whose host has an overdue call.
    private static let delay: Duration = .seconds(30)

    private let session: SessionManager
    private let timeout: Duration
    private let state = Mutex(State())

    private struct State {
        var lastCall = 0
        /// The calls for which their attempts wait.
        var running: Set<Int> = []
        /// The hosts of the calls that have not returned although their attempts no longer wait.
        var overdue: [Int: String] = [:]
    }

    init(of session: SessionManager, timeout: Duration) {
        self.session = session
        self.timeout = timeout
    }

    /// Returns the request that the session's adapter and interceptor create.
    ///
    /// - Throws: ``CredentialFault`` if a call does not return in time, `CancellationError`, or the error of the adapter
    ///   or the interceptor.
    func adapted(_ request: URLRequest) async throws -> URLRequest {
        guard session.adaptsRequests else { return request }
        let host = request.url?.host ?? ""
        guard let call = begin(for: host) else { throw fault.delayed(by: Self.delay) }
        do {
            return try await TimedCall.run(within: timeout) { [self] in
                defer { end(call) }
                // Each call has its own queue: Dispatch starts a thread for a serial queue even if the threads of other
                // queues are blocked.
                return try await session.adapted(request, on: DispatchQueue(label: "netwatch.adapter"))
            }
        } catch is TimedCall.Timeout {
            stopWaiting(for: call, host)
            throw fault
        } catch is CancellationError {
            stopWaiting(for: call, host)
            throw CancellationError()
        }
    }

    private var fault: CredentialFault {
        let words = "the adapter of the queue's session did not return within \(timeout.words)"
        return CredentialFault(.retry, words)
    }

    /// Returns the number of a new call; `nil` if overdue calls forbid it.
    private func begin(for host: String) -> Int? {
        state.withLock { state in
            guard state.overdue.count < Self.maximumOverdue, !state.overdue.values.contains(host) else {
                return nil
            }
            state.lastCall += 1
            state.running.insert(state.lastCall)
            return state.lastCall
        }
    }

    /// Records that the attempt no longer waits for a call. The call is overdue unless it has returned.
    private func stopWaiting(for call: Int, _ host: String) {
        state.withLock { if $0.running.remove(call) != nil { $0.overdue[call] = host } }
    }

    /// Records that a call has returned.
    private func end(_ call: Int) {
        state.withLock { state in
            state.running.remove(call)
            state.overdue[call] = nil
        }
    }
}
