internal import NetwatchEventLoop

/// A timer that calls a handler at a deadline, at an interval, or both. Its clock continues while the machine sleeps.
/// The timer runs as long as it is retained.
final class CommandTimer: Sendable {
    private let loop: EventLoop
    private let onTick: @Sendable () -> Void
    private let movable = Lock<EventLoop.Timer?>(nil)

    /// - Parameters:
    ///   - deadline: When to call the handler once; `nil` for never.
    ///   - interval: How often to call the handler; `nil` for never.
    ///   - onTick: Called on the timer's thread.
    init(
        deadline: BootInstant?,
        interval: Duration? = nil,
        onTick: @escaping @Sendable () -> Void
    ) throws(CommandError) {
        do {
            loop = try EventLoop(label: "nw-timer")
        } catch {
            throw CommandError(.unknown, "could not start a timer: \(error)")
        }
        self.onTick = onTick
        if let deadline { loop.schedule(at: deadline, onTick) }
        if let interval { repeatEvery(interval) }
    }

    /// Schedules one call at `deadline`. Cancels the call of an earlier `reschedule(at:)`.
    func reschedule(at deadline: BootInstant) {
        let new = loop.schedule(at: deadline, onTick)
        let old = movable.withLock { timer in
            defer { timer = new }
            return timer
        }
        if let old { loop.cancel(old) }
    }

    private func repeatEvery(_ interval: Duration) {
        loop.schedule(at: .now + interval) { [weak self] in
            self?.onTick()
            self?.repeatEvery(interval)
        }
    }
}
