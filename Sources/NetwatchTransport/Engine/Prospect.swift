internal import NetwatchEventLoop

/// A transfer that is not libcurl's yet: it waits for others to the same host, or for the host's addresses.
///
/// Lives on the engine's thread. A class, because it is handed about there more than anything else.
final class Prospect {
    private(set) var target: TransferTarget
    private(set) var caller: TransferCaller
    /// Ends it in time.
    var timer: EventLoop.Timer?
    private(set) var paused: TransferPause = []

    init(_ target: TransferTarget, _ caller: TransferCaller) {
        self.target = target
        self.caller = caller
    }

    /// It need not wait for others any more.
    func begin(_ loop: EventLoop) {
        timer.map(loop.cancel)
        timer = nil
        caller.hasBegun()
        target.wait(caller.begun ?? .zero)
    }

    func take(
        _ outcome: NameResolver.Outcome,
        _ loop: EventLoop
    ) throws(TransferFailure) {
        timer.map(loop.cancel)
        caller.lookupHasEnded(outcome)
        target.spend(caller.elapsed - (caller.begun ?? .zero))
        switch outcome {
        case .success(let addresses): try target.setAddresses(addresses)
        case .failure(let failure): throw .noAddress(failure)
        }
    }

    func setPause(_ what: TransferPause?) {
        paused = what.map(paused.union) ?? []
    }
}
