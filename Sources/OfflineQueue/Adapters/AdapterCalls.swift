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
    private let session: SessionManager
    /// The calls by host.
    let calls: KeyedCalls<String>

    /// - Parameters:
    ///   - session: The session whose adapter and interceptor are called.
    ///   - timeout: The maximum time for which an attempt waits for them.
    ///   - clock: The clock of the timeout.
    init<Time: Clock>(of session: SessionManager, timeout: Duration, clock: Time = ContinuousClock())
    where Time.Duration == Duration {
        self.session = session
        calls = KeyedCalls(timeout: timeout, clock: clock)
    }

    /// Returns the request that the session's adapter and interceptor create.
    ///
    /// - Throws: ``WithheldReason`` if the call is refused or does not return in time, `CancellationError`, or the
    ///   error of the adapter or the interceptor.
    func adapted(_ request: URLRequest) async throws -> URLRequest {
        guard session.adaptsRequests else { return request }
        let host = request.url?.host?.lowercased() ?? ""
        return try await calls.run(for: host, of: "the adapter of the queue's session", keys: "hosts") {
            [session] in
            // Each call has its own queue: Dispatch starts a thread for a serial queue even if the threads of other
            // queues are blocked.
            try await session.adapted(request, on: DispatchQueue(label: "netwatch.adapter"))
        }
    }
}
