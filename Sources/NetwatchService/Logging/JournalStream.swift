internal import Glibc
internal import NetwatchEventLoop

/// Writes lines to standard error while it is connected to the journal. If the journal does not read, a call waits only
/// for a short time, and the lines are lost. Later lines say how many entries.
final class JournalStream: Sendable {
    private struct State {
        /// Whether the last call has waited without success. Until a call succeeds, calls do not wait.
        var isStalled = false
        /// Whether a part of a line was written that has no end.
        var isCut = false
        /// The number of entries that were lost since the last call that succeeded.
        var lost = 0
    }

    private let descriptor: CInt
    private let timeout: Duration
    private let state = Lock(State())

    /// - Parameters:
    ///   - descriptor: The descriptor to write to. The caller must not close it.
    ///   - timeout: The maximum time of a call. Default 100 ms.
    init(_ descriptor: CInt = STDERR_FILENO, timeout: Duration = .milliseconds(100)) {
        self.descriptor = descriptor
        self.timeout = timeout
    }

    /// Writes the lines of one entry. Each must have its priority and its end. Calls of different threads do not mix.
    func write(_ lines: String) {
        state.withLock { state in
            let bytes = Array((Self.note(state) + lines).utf8)
            let sent = send(bytes, within: state.isStalled ? .zero : timeout)
            if sent == bytes.count {
                state = State()
            } else {
                state.isStalled = true
                state.isCut = state.isCut || sent > 0
                state.lost += 1
            }
        }
    }

    /// Returns a warning about the entries that were lost, for another way to the journal; `nil` if there are none.
    func takeLoss() -> String? {
        state.withLock { state in
            defer { state.lost = 0 }
            return Self.loss(state)
        }
    }

    private static func loss(_ state: State) -> String? {
        guard state.lost > 0 else { return nil }
        return "log entries that were lost because the journal did not read them: \(state.lost)"
    }

    /// Returns the text before the next entry: the end of a line that was cut, and the warning about lost entries.
    private static func note(_ state: State) -> String {
        (state.isCut ? "\n" : "") + (loss(state).map { "<4>\($0)\n" } ?? "")
    }

    /// Sends bytes until the time is over. Returns their number.
    private func send(_ bytes: [UInt8], within limit: Duration) -> Int {
        let deadline = ContinuousClock.now + limit
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor,
                    buffer.baseAddress! + sent,
                    buffer.count - sent,
                    CInt(MSG_DONTWAIT | MSG_NOSIGNAL)
                )
            }
            if count > 0 { sent += count }
            guard count < 0 else { continue }
            switch errno {
            case EINTR: continue
            case EAGAIN: guard isWritable(by: deadline) else { return sent }
            default: return sent
            }
        }
        return sent
    }

    private func isWritable(by deadline: ContinuousClock.Instant) -> Bool {
        let rest = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
        guard rest > 0 else { return false }
        var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&polled, 1, CInt(rest.rounded(.up))) > 0
    }
}
