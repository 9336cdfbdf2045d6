internal import Dispatch
internal import Glibc

/// Calls functions before the terminal stops the process (Ctrl-Z), and after the shell has continued it (`fg`). The
/// second one may be called more than once.
final class JobSignals {
    private var sources: [any DispatchSourceSignal] = []

    /// Both functions are called on a libdispatch thread. `beforeStop` is not called if `SIGTSTP` was ignored at the
    /// start.
    init(beforeStop: @escaping @Sendable () -> Void, afterContinue: @escaping @Sendable () -> Void) {
        if !SignalWatch.isIgnored(SIGTSTP) {
            add(SIGTSTP) {
                beforeStop()
                Self.stop()
                afterContinue()
            }
        }
        add(SIGCONT, afterContinue)
    }

    private func add(_ signal: CInt, _ body: @escaping @Sendable () -> Void) {
        let source = DispatchSource.makeSignalSource(signal: signal)
        source.setEventHandler { body() }
        source.activate()
        sources.append(source)
    }

    /// Stops the process by the signal itself, so that the shell sees which signal it was. Returns when the process
    /// continues, and immediately if no shell could continue it.
    private static func stop() {
        // A zeroed action is the default action.
        var (usual, caught) = (sigaction(), sigaction())
        sigaction(SIGTSTP, &usual, &caught)
        var (stopping, mask) = (sigset_t(), sigset_t())
        sigemptyset(&stopping)
        sigaddset(&stopping, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stopping, &mask)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        sigaction(SIGTSTP, &caught, nil)
    }
}
