internal import Dispatch
internal import Glibc
internal import Synchronization

/// Catches the signals that end a command, so that it can end in order.
final class SignalWatch {
    /// What a command is to its user.
    enum Kind {
        /// A second signal ends it at once. A signal that was ignored when the process began, as `nohup` and a shell's `&`
        /// arrange it, stays ignored.
        case interactive
        /// Repeated signals change nothing: timeout(1) signals a process and then its group. Signals that were ignored
        /// are caught, because a script that starts the service in the background must be able to stop it.
        case service
    }

    private let catcher: Catcher
    private var sources: [any DispatchSourceSignal] = []

    /// - Parameters:
    ///   - signals: Which to catch.
    ///   - kind: What to do with ignored and repeated signals. Default: an interactive command.
    ///   - onSignal: Called on a thread of libdispatch.
    init(_ signals: [CInt], of kind: Kind = .interactive, onSignal: @escaping @Sendable () -> Void) {
        let catcher = Catcher(kind)
        self.catcher = catcher
        for signal in signals {
            if Self.isIgnored(signal) {
                guard kind == .service else { continue }
                Glibc.signal(signal, SIG_DFL)
            }
            let source = DispatchSource.makeSignalSource(signal: signal)
            source.setEventHandler {
                catcher.caught(signal)
                onSignal()
            }
            source.activate()
            sources.append(source)
        }
    }

    /// The signal that was caught, if any.
    var caught: CInt? {
        catcher.signal
    }

    private static func isIgnored(_ signal: CInt) -> Bool {
        var action = sigaction()
        sigaction(signal, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Ends the process the way the signal would have, so that the parent process sees the signal.
    static func endProcess(by signal: CInt) -> Never {
        Glibc.signal(signal, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(signal)
        exit(128 + signal)
    }
}

/// Remembers the first signal.
private final class Catcher: Sendable {
    private let kind: SignalWatch.Kind
    private let first = Mutex<CInt?>(nil)

    init(_ kind: SignalWatch.Kind) { self.kind = kind }

    var signal: CInt? {
        first.withLock { $0 }
    }

    func caught(_ signal: CInt) {
        let isFirst = first.withLock { first in
            defer { first = first ?? signal }
            return first == nil
        }
        if !isFirst, kind == .interactive { SignalWatch.endProcess(by: signal) }
    }
}
