internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop

/// Catches the signals that end a command, so that it can shut down cleanly.
final class SignalWatch {
    /// How a command treats signals.
    enum Kind {
        /// A second signal ends the command immediately. A signal that was ignored when the process started, for
        /// example by `nohup` or a shell's `&`, stays ignored.
        case interactive
        /// Repeated signals have no effect, because timeout(1) sends one to the process and another to its process
        /// group. Signals that were ignored at the start are caught, because a script that starts the service in the
        /// background must be able to stop it.
        case service
    }

    private let firstSignal: FirstSignal
    private var sources: [any DispatchSourceSignal] = []

    /// - Parameters:
    ///   - signals: The signals to catch.
    ///   - kind: How to treat ignored and repeated signals. Default: an interactive command.
    ///   - beforeEnding: Called on a libdispatch thread before a second signal ends the process. Default: nothing.
    ///   - onSignal: Called on a libdispatch thread.
    init(
        _ signals: [CInt],
        of kind: Kind = .interactive,
        beforeEnding: @escaping @Sendable () -> Void = {},
        onSignal: @escaping @Sendable () -> Void
    ) {
        let firstSignal = FirstSignal(kind, beforeEnding: beforeEnding)
        self.firstSignal = firstSignal
        for signal in signals {
            if Self.isIgnored(signal) {
                guard kind == .service else { continue }
                Glibc.signal(signal, SIG_DFL)
            }
            let source = DispatchSource.makeSignalSource(signal: signal)
            source.setEventHandler {
                firstSignal.caught(signal)
                onSignal()
            }
            source.activate()
            sources.append(source)
        }
    }

    /// The first caught signal, if any.
    var caught: CInt? {
        firstSignal.signal
    }

    static func isIgnored(_ signal: CInt) -> Bool {
        var action = sigaction()
        sigaction(signal, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Makes signals end the process if it is process 1 of a PID namespace, for example of a container. The kernel drops
    /// a signal to process 1 whose action is the default one (pid_namespaces(7)).
    static func endProcess1BySignals() {
        guard getpid() == 1 else { return }
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] where !isIgnored(signal) {
            // The exit status that a shell shows for the signal.
            Glibc.signal(signal) { _exit(128 + $0) }
        }
    }

    /// Ends the process by the signal itself, so that the parent process sees which signal it was.
    static func endProcess(by signal: CInt) -> Never {
        Glibc.signal(signal, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(signal)
        // Process 1 of a PID namespace is still running.
        exit(128 + signal)
    }
}

/// Stores the first signal. In an interactive command, a second one ends the process.
private final class FirstSignal: Sendable {
    private let kind: SignalWatch.Kind
    private let beforeEnding: @Sendable () -> Void
    private let first = Lock<CInt?>(nil)

    init(_ kind: SignalWatch.Kind, beforeEnding: @escaping @Sendable () -> Void) {
        self.kind = kind
        self.beforeEnding = beforeEnding
    }

    var signal: CInt? {
        first.withLock { $0 }
    }

    func caught(_ signal: CInt) {
        let isFirst = first.withLock { first in
            defer { first = first ?? signal }
            return first == nil
        }
        guard !isFirst, kind == .interactive else { return }
        beforeEnding()
        SignalWatch.endProcess(by: signal)
    }
}
