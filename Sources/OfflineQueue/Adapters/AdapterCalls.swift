internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking

/// The calls of the adapter and the interceptor of the queue's session.
///
/// Both are code of the program and may never return. An attempt therefore waits for them only for a limited time, and
/// then its request is postponed. ``KeyedCalls`` limits the calls that have not returned, with the host as the key: a
/// host for which the adapter hangs does not delay requests to other hosts.
struct AdapterCalls: Sendable {
    /// The delay before the next attempt of a request whose call was refused.
    private static let delay: Duration = .seconds(30)

    private let session: SessionManager
    private let timeout: Duration
    /// The calls by host.
    let calls: KeyedCalls<String>

    /// - Parameters:
    ///   - session: The session whose adapter and interceptor are called.
    ///   - timeout: The maximum time for which an attempt waits for them.
    ///   - clock: The clock of the timeout.
    init<Time: Clock>(of session: SessionManager, timeout: Duration, clock: Time = ContinuousClock())
    where Time.Duration == Duration {
        self.session = session
        self.timeout = timeout
        calls = KeyedCalls(timeout: timeout, clock: clock)
    }

    /// Returns the request that the session's adapter and interceptor create.
    ///
    /// - Throws: ``WithheldReason`` if the call is refused or does not return in time, `CancellationError`, or the
    ///   error of the adapter or the interceptor.
    func adapted(_ request: URLRequest) async throws -> URLRequest {
        guard session.adaptsRequests else { return request }
        let host = request.url?.host?.lowercased() ?? ""
        do {
            return try await calls.run(for: host) { [session] in
                // Each call has its own queue: Dispatch starts a thread for a serial queue even if the threads of other
                // queues are blocked.
                try await session.adapted(request, on: DispatchQueue(label: "netwatch.adapter"))
            }
        } catch is TimedCall.Timeout {
            throw overdue
        } catch let refusal as KeyedCalls<String>.Refusal {
            throw reason(for: refusal).delayed(by: Self.delay)
        }
    }

    private func reason(for refusal: KeyedCalls<String>.Refusal) -> WithheldReason {
        switch refusal {
        case .overdue: overdue
        case .tooManyOverdueKeys:
            WithheldReason(
                .retry,
                "the adapter of the queue's session has not returned for \(KeyedCalls<String>.maximumOverdueKeys) "
                    + "other hosts"
            )
        }
    }

    private var overdue: WithheldReason {
        let words = "the adapter of the queue's session did not return within \(timeout.words)"
        return WithheldReason(.retry, words)
    }
}
