internal import NetwatchEventLoop

/// The answer that the program's code gives by calling a completion closure.
///
/// The first call is the answer; later calls are ignored. If the program releases the closure without calling it, a
/// default is the answer, so that the request ends anyway.
final class DelayedAnswer<Value: Sendable>: Sendable {
    private let receiver: Lock<(@Sendable (Value) -> Void)?>
    private let standard: Value

    /// - Parameters:
    ///   - standard: The answer if the program gives none.
    ///   - receiver: Receives the answer. Called once, on any thread.
    init(default standard: Value, _ receiver: @escaping @Sendable (Value) -> Void) {
        self.standard = standard
        self.receiver = Lock(receiver)
    }

    deinit { give(standard) }

    func give(_ value: Value) {
        let receiver = receiver.withLock { receiver in
            defer { receiver = nil }
            return receiver
        }
        receiver?(value)
    }
}
