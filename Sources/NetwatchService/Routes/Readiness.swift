internal import NIOHTTP1
internal import NetwatchEventLoop

/// Whether the service processes requests.
final class Readiness: Sendable {
    enum Phase: String {
        /// The socket accepts connections, but the queue has not started yet.
        case starting
        case ready
        case stopping
    }

    private let state = Lock(Phase.starting)

    var phase: Phase {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// Throws `not_ready` before the start and after the beginning of the stop.
    func require() throws(Problem) {
        let phase = phase
        guard phase != .ready else { return }
        throw Problem(
            .serviceUnavailable,
            code: "not_ready",
            detail: "the service is \(phase.rawValue)",
            retryAfter: 1
        )
    }
}
