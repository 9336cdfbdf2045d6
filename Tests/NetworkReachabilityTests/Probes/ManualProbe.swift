internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// A probe that runs until the test calls ``answer(_:)``, even if it is cancelled.
final class ManualProbe: Probe {
    enum Event: Hashable {
        case started(NetworkPath)
        case cancelled
    }

    let name = "held"
    let events = Recorder<Event>()
    private let waiters = Lock<[CheckedContinuation<ProbeResult, Never>]>([])

    func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                waiters.withLock { $0.append(waiter) }
                events.record(.started(path))
            }
        } onCancel: {
            events.record(.cancelled)
        }
    }

    /// Ends all runs, including cancelled ones, with this result.
    func answer(_ validation: PathValidation) {
        let ended = waiters.withLock { waiters in
            defer { waiters = [] }
            return waiters
        }
        for waiter in ended { waiter.resume(returning: ProbeResult(validation)) }
    }

    var starts: [NetworkPath] {
        events.values.compactMap { if case .started(let path) = $0 { path } else { nil } }
    }
}
