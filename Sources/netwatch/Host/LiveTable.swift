internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// A table of hosts that is redrawn in place.
struct LiveTable {
    private var drawnRows = 0

    /// Returns the terminal output that replaces the previous table with these records.
    ///
    /// - Parameter hasColors: Whether states have colours. Default: the choice of the user.
    mutating func drawing(
        _ records: [HostRecord],
        now: BootInstant,
        columns: Int,
        rows: Int,
        hasColors: Bool = ColorChoice.showsColors(on: STDOUT_FILENO)
    ) -> String {
        let lines = Self.lines(records, now: now, columns: columns, rows: rows)
        defer { drawnRows = lines.count }
        // If the window has become narrower since the previous drawing, the terminal has wrapped the old table into
        // more rows. The first rows of the old table then stay visible.
        return Terminal.hideCursor + "\r" + Terminal.up(drawnRows) + Terminal.clearToEnd
            + lines.map { $0.rendered(withStyles: hasColors) + "\r\n" }.joined()
    }

    /// The number of rows of the smallest window in which the table has a header.
    private static let leastRowsWithHeader = 4

    /// Returns a header and one line per host, as many as fit while leaving a row for the cursor. No line is wider than
    /// the window.
    static func lines(
        _ records: [HostRecord],
        now: BootInstant,
        columns: Int,
        rows: Int
    ) -> [StyledText] {
        let hasHeader = rows >= leastRowsWithHeader
        let room = max(1, rows - (hasHeader ? 2 : 1))
        let shown = records.count <= room ? records[...] : records.prefix(max(0, room - 1))
        // The last column stays free, because some terminals wrap as soon as it is written.
        let width = max(1, columns - 1)
        let hostWidth = hostWidth(shown, in: width)
        var lines = hasHeader ? [header(hostWidth: hostWidth)] : []
        lines += shown.map { line($0, hostWidth: hostWidth, now: now) }
        if shown.count < records.count {
            lines.append(StyledText("… and \(records.count - shown.count) more"))
        }
        return lines.map { $0.shortened(to: width) }
    }

    private static let gap = "  "
    /// The width of the state: that of `not reachable`.
    private static let stateWidth = 13
    /// The width of the time since the last change of the state.
    private static let ageWidth = 12

    /// Returns the width of the hosts: at most 40 columns, and less in a window that would otherwise cut the states. 0
    /// if there is room for the states only.
    private static func hostWidth(_ records: ArraySlice<HostRecord>, in width: Int) -> Int {
        let longest = records.map { $0.target.title.count }.max() ?? 0
        let ellipsis = 1
        return max(0, min(max(longest, 12), 40, width - gap.count - stateWidth - ellipsis))
    }

    private static func header(hostWidth: Int) -> StyledText {
        let titles = ["STATE".padded(to: stateWidth), "FOR".padded(to: ageWidth), "PATH OR REASON"]
        let columns = (hostWidth > 0 ? ["HOST".shortened(to: hostWidth).padded(to: hostWidth)] : []) + titles
        return StyledText(columns.joined(separator: gap), .title)
    }

    private static func line(
        _ record: HostRecord,
        hostWidth: Int,
        now: BootInstant
    ) -> StyledText {
        let host = record.target.title.shortened(to: hostWidth).padded(to: hostWidth)
        let beginning = StyledText(hostWidth > 0 ? host + gap : "")
        guard let status = record.newest, let tally = record.tally else { return beginning + StyledText("…") }
        let rest = [
            "".padded(to: stateWidth - status.stateText.count),
            DurationText.format(tally.age(now: now)).padded(to: ageWidth),
            status.summary(),
        ]
        return beginning + StyledText(state: status.stateText) + StyledText(rest.joined(separator: gap))
    }
}

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
