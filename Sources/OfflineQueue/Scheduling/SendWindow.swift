/// The number of requests that an origin may have in flight, adapted to what the server can take.
///
/// The window grows by 1/N with each success, where N is its size: by one request for each full window of successes.
/// At a sign of overload it shrinks to 70 %. Postfix uses the same growth. With a step of ±1, Postfix measured that
/// 50 % of deliveries to a limiting server were deferred; with steps of 1/N, 16.5 %.
struct SendWindow: Hashable, Sendable {
    /// The factor by which a window shrinks.
    static let defaultDecrease = 0.7

    private let decrease: Double
    private var ceiling: Double
    private var size: Double
    /// The time of the last reduction.
    private var shrunkAt: Moment?

    /// Creates a window that is as large as the configured limit. A server that shows no overload is never slowed down.
    init(ceiling: Int, decrease: Double = defaultDecrease) {
        self.decrease = decrease
        self.ceiling = Double(ceiling)
        size = Double(ceiling)
    }

    var limit: Int { max(1, Int(size)) }

    /// Replaces the configured limit. A window that signs of overload have reduced does not grow.
    mutating func use(ceiling: Int) {
        let isReduced = size < self.ceiling
        self.ceiling = Double(ceiling)
        size = isReduced ? min(size, self.ceiling) : self.ceiling
    }

    /// - Parameter began: When the successful attempt began.
    mutating func succeeded(began: Moment) {
        guard isOfCurrentSize(began) else { return }
        size = min(ceiling, size + 1 / size)
    }

    /// Reduces the window, unless another attempt of the same series did so.
    ///
    /// - Parameter began: When the failed attempt began.
    mutating func overloaded(began: Moment, now: Moment) {
        guard isOfCurrentSize(began) else { return }
        size = max(1, size * decrease)
        shrunkAt = now
    }

    /// The attempts that were in flight at a reduction say nothing about the smaller window.
    private func isOfCurrentSize(_ began: Moment) -> Bool { shrunkAt.map { began > $0 } ?? true }
}
