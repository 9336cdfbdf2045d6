/// Whether what `netwatch wait` waits for has come, and has lasted long enough. A pure value.
struct WaitCondition {
    private let isAny: Bool
    private let stable: Duration
    /// Since when each part has been fulfilled without interruption; `nil` while it is not.
    private var since: [ContinuousClock.Instant?]

    /// - Parameters:
    ///   - parts: How many things are waited for, at least one.
    ///   - isAny: Whether one of them is enough.
    ///   - stable: How long they have to last.
    init(parts: Int, isAny: Bool, stable: Duration) {
        self.isAny = isAny
        self.stable = stable
        since = Array(repeating: nil, count: parts)
    }

    /// Takes news of one part.
    ///
    /// - Parameter isInterrupted: Whether it was not fulfilled for a moment since the last news, although it
    ///   was then and is now.
    mutating func take(part: Int, isMet: Bool, isInterrupted: Bool, now: ContinuousClock.Instant) {
        if !isMet {
            since[part] = nil
        } else if since[part] == nil || isInterrupted {
            since[part] = now
        }
    }

    /// When the condition will be fulfilled if nothing changes; `nil` if something has to.
    var due: ContinuousClock.Instant? {
        let met = since.compactMap(\.self)
        guard isAny || met.count == since.count else { return nil }
        return (isAny ? met.min() : met.max()).map { $0 + stable }
    }

    /// The parts that are not fulfilled.
    var missing: [Int] {
        since.indices.filter { since[$0] == nil }
    }
}
