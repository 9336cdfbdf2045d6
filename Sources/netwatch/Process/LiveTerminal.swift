internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop

/// The terminal of a command that redraws its output in place. While it is entered, the cursor is hidden, and keys are
/// read without Enter and without an echo.
final class LiveTerminal: Sendable {
    private struct State {
        var isEntered = false
        /// Whether nothing was drawn since the terminal was entered.
        var isFresh = true
        /// The mode to restore; `nil` if the mode was not changed.
        var mode: termios?
        var isQuit = false
    }

    private let state = Lock(State())
    /// The controlling terminal; -1 if there is none. Standard input may be a file of hosts.
    private let input = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
    /// Signalled when keys can be read, because this process is in the foreground.
    private let canReadKeys = DispatchSemaphore(value: 0)

    deinit {
        leave()
        if input >= 0 { close(input) }
    }

    /// Whether the user has pressed `q`.
    var isQuit: Bool { state.withLock { $0.isQuit } }

    /// Writes text with control sequences. Has no effect while the terminal is not entered.
    ///
    /// - Parameter drawing: Returns the text. Its argument is whether nothing was drawn since the terminal was entered.
    ///   Other programs may have written below an earlier drawing, so the text must not replace it then.
    func draw(_ drawing: (_ isFresh: Bool) -> String) {
        state.withLock { state in
            guard state.isEntered else { return }
            changeMode(&state)
            let text = drawing(state.isFresh)
            state.isFresh = false
            Printer.terminal(text)
        }
    }

    // MARK: Modes

    /// Must be called again after the process was continued, once or several times.
    func enter() {
        state.withLock { state in
            if !state.isEntered { (state.isEntered, state.isFresh) = (true, true) }
            Printer.terminal(Terminal.hideCursor)
            changeMode(&state)
        }
    }

    /// Makes keys readable without Enter and without an echo. Has no effect in the background. A shell that moves a
    /// running job to the foreground does not notify it, so this is called again before each drawing.
    private func changeMode(_ state: inout State) {
        var mode = termios()
        guard state.mode == nil, hasTerminal, tcgetattr(input, &mode) == 0 else { return }
        state.mode = mode
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(input, TCSANOW, &mode)
        canReadKeys.signal()
    }

    func leave() {
        state.withLock { state in
            guard state.isEntered else { return }
            state.isEntered = false
            Printer.terminal(Terminal.showCursor)
            if var mode = state.mode, hasTerminal { tcsetattr(input, TCSANOW, &mode) }
            state.mode = nil
        }
    }

    /// Whether this process is in the foreground. The kernel stops a background process that changes the mode.
    private var hasTerminal: Bool { tcgetpgrp(input) == getpgrp() }

    // MARK: Keys

    /// Reads keys on a separate thread, while this process is in the foreground. The thread ends with the terminal.
    ///
    /// - Parameter onQuit: Called on that thread after `q`.
    func readKeys(onQuit: @escaping @Sendable () -> Void) {
        guard input >= 0 else { return }
        // If no thread can be started, only signals end the command.
        try? startDetachedThread(named: "nw-keys") { [self] in
            var key: UInt8 = 0
            while true {
                let count = read(input, &key, 1)
                if count == -1, errno == EINTR { continue }
                // A read in the background fails with EIO, because this thread blocks SIGTTIN. Without a terminal,
                // no key follows.
                if count == -1, errno == EIO, tcgetpgrp(input) != -1 {
                    waitForForeground()
                    continue
                }
                guard count == 1 else { return }
                guard key == UInt8(ascii: "q") else { continue }
                state.withLock { $0.isQuit = true }
                onQuit()
            }
        }
    }

    private func waitForForeground() {
        // The shell uses the terminal now, with its own mode.
        state.withLock { state in
            if !hasTerminal { state.mode = nil }
        }
        canReadKeys.wait()
    }
}
