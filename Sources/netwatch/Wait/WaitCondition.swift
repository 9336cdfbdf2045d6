internal import NetwatchEventLoop

/// The condition of `netwatch wait`: whether it is met, and whether it has lasted long enough. It is a value.
///
/// It consists of parts: one for each host or, with `--for carrier`, for each named interface. Without names it has one
/// part.
struct WaitCondition {
    private let isAny: Bool
    private let stable: Duration
    /// The time since which each part has been met without interruption; `nil` for a part that is not met.
    private var since: [BootInstant?]

    /// - Parameters:
    ///   - parts: The number of parts, at least one.
    ///   - isAny: Whether one part is sufficient.
    ///   - stable: How long the parts must stay met.
    init(parts: Int, isAny: Bool, stable: Duration) {
        self.isAny = isAny
        self.stable = stable
        since = Array(repeating: nil, count: parts)
    }

    /// Records the state of one part.
    ///
    /// - Parameter isInterrupted: Whether the part was not met at some time between the previous call and this one.
    mutating func take(part: Int, isMet: Bool, isInterrupted: Bool, now: BootInstant) {
        if !isMet {
            since[part] = nil
        } else if since[part] == nil || isInterrupted {
            since[part] = now
        }
    }

    /// The time at which the condition is met if no part changes; `nil` if a part must change first.
    var due: BootInstant? {
        let met = since.compactMap(\.self)
        guard isAny || met.count == since.count else { return nil }
        return (isAny ? met.min() : met.max()).map { $0 + stable }
    }

    /// The parts that are not met.
    var missing: [Int] {
        since.indices.filter { since[$0] == nil }
    }
}
