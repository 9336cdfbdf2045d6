internal import Dispatch
internal import Glibc
internal import Synchronization

/// Catches the first of the signals that end a command, so that it can have a last word. The second one
/// ends it at once.
final class SignalWatch {
    private let catcher = Catcher()
    private var sources: [any DispatchSourceSignal] = []

    /// - Parameters:
    ///   - signals: Which to catch. One that was ignored when the process began, as `nohup` does, stays so.
    ///   - onSignal: Called on a thread of libdispatch.
    init(_ signals: [CInt], onSignal: @escaping @Sendable () -> Void) {
        let catcher = catcher
        for signal in signals where !Self.isIgnored(signal) {
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

    /// Ends the process the way the signal would have, so that whoever waits for it is told of the signal.
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
    private let first = Mutex<CInt?>(nil)

    var signal: CInt? {
        first.withLock { $0 }
    }

    func caught(_ signal: CInt) {
        let isFirst = first.withLock { first in
            defer { first = first ?? signal }
            return first == nil
        }
        if !isFirst { SignalWatch.endProcess(by: signal) }
    }
}
