package import ClientCore
internal import NetwatchEventLoop

/// The request of a session that sends an attempt. The sender sets it before it waits for the response.
package final class SentRequest: Sendable {
    private let state = Lock<Request?>(nil)

    package init() {}

    package var request: Request? { state.withLock { $0 } }

    package func set(_ request: Request) { state.withLock { $0 = request } }
}
