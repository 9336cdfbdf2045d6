internal import NetwatchEventLoop

/// Calls a command back at a moment, and again and again, on a clock that goes on while the machine sleeps.
/// It lasts as long as it is retained.
final class CommandTimer: Sendable {
    private let loop: EventLoop
    private let onTick: @Sendable () -> Void

    /// - Parameters:
    ///   - deadline: When to call once; `nil` for never.
    ///   - interval: How often to call; `nil` for never.
    ///   - onTick: Called on the timer's thread.
    init(
        deadline: ContinuousClock.Instant?,
        interval: Duration? = nil,
        onTick: @escaping @Sendable () -> Void
    ) throws(CommandError) {
        do {
            loop = try EventLoop(label: "nw-timer")
        } catch {
            throw CommandError(.unknown, "could not start a timer: \(error)")
        }
        self.onTick = onTick
        if let deadline { schedule(at: deadline) }
        if let interval { repeatEvery(interval) }
    }

    /// Calls at one more moment.
    func schedule(at deadline: ContinuousClock.Instant) {
        loop.schedule(at: deadline, onTick)
    }

    private func repeatEvery(_ interval: Duration) {
        loop.schedule(at: .now + interval) { [weak self] in
            self?.onTick()
            self?.repeatEvery(interval)
        }
    }
}
