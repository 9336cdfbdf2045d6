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
    /// The number of overdue calls by host.
    private let overdue = Mutex<[String: Int]>([:])

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
        guard mayCall(for: host) else { throw fault.delayed(by: Self.delay) }
        let call = Call()
        do {
            return try await TimedCall.run(within: timeout) { [self] in
                defer { if call.end() { changeOverdue(of: host, by: -1) } }
                // Each call has its own queue: Dispatch starts a thread for a serial queue even if the threads of other
                // queues are blocked.
                return try await session.adapted(request, on: DispatchQueue(label: "netwatch.adapter"))
            }
        } catch is TimedCall.Timeout {
            if call.becomeOverdue() { changeOverdue(of: host, by: 1) }
            throw fault
        } catch is CancellationError {
            if call.becomeOverdue() { changeOverdue(of: host, by: 1) }
            throw CancellationError()
        }
    }

    private var fault: CredentialFault {
        let words = "the adapter of the queue's session did not return within \(timeout.words)"
        return CredentialFault(.retry, words)
    }

    private func mayCall(for host: String) -> Bool {
        overdue.withLock { $0[host] == nil && $0.values.reduce(0, +) < Self.maximumOverdue }
    }

    private func changeOverdue(of host: String, by change: Int) {
        overdue.withLock { counts in
            let count = counts[host, default: 0] + change
            counts[host] = count == 0 ? nil : count
        }
    }

    /// One call. It is overdue from the end of the attempt's wait until it returns.
    private final class Call: Sendable {
        private enum State { case running, overdue, ended }
        private let state = Mutex(State.running)

        /// Records that the attempt no longer waits. Returns whether the call is still running.
        func becomeOverdue() -> Bool {
            state.withLock { state in
                guard state == .running else { return false }
                state = .overdue
                return true
            }
        }

        /// Records that the call has returned. Returns whether it was overdue.
        func end() -> Bool {
            state.withLock { state in
                defer { state = .ended }
                return state == .overdue
            }
        }
    }
}
