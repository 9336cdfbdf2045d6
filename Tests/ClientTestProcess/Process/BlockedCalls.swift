internal import ClientCore
internal import Dispatch
internal import Foundation
internal import NetwatchTestSupport

/// Calls of the program's code in one session that do not return until ``release()``. They are more than the threads
/// that Dispatch starts, which are 255.
struct BlockedCalls: RequestRetrier {
    private static let count = 300

    private let blocked = Recorder<Bool>()
    private let ended = Recorder<Bool>()
    private let gate = Gate()

    /// Starts requests that cause the calls.
    func begin(_ hook: ProcessOptions.Hook, in session: SessionManager, _ url: String) {
        let queue = DispatchQueue(label: "handlers")
        session.retrier = self
        for _ in 0..<Self.count {
            switch hook {
            // The request fails without a transfer, because the scheme is not supported.
            case .retrier: session.request("ftp://host/").response(queue: queue) { _ in ended.record(true) }
            case .form:
                session.upload(multipartFormData: { _ in block() }, to: url, queue: queue) { _ in
                    ended.record(true)
                }
            }
        }
    }

    /// Waits until some of the calls block a thread.
    func wait(until count: Int) async throws { try await blocked.wait { $0.count >= count } }

    /// The number of the calls that have blocked a thread.
    var blockedCount: Int { blocked.values.count }

    /// Lets all calls return, and waits for the ends of their requests or forms. Returns their number.
    func release() async throws -> Int {
        for _ in 0..<Self.count { gate.open() }
        try await ended.wait { $0.count >= Self.count }
        return ended.values.count
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        block()
        completion(false, 0)
    }

    private func block() {
        blocked.record(true)
        gate.wait()
    }
}
