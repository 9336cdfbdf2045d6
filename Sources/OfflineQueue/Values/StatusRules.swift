/// The statuses of responses after which a request is retried or given up, in place of the usual meaning of the status.
///
/// ```swift
/// var options = EnqueueOptions()
/// // A 404 of this server is temporary, and a 500 is not.
/// options.statusRules = StatusRules(retry: [404...404], dead: [500...500])
/// ```
///
/// The article <doc:WhatFailuresMean> has the usual meanings. A status that neither list contains keeps its meaning.
///
/// The lists do not apply to a response that meets ``EnqueueOptions/expectation``, nor to one that is treated as a captive
/// portal's. They do not change the effect of a `Retry-After`. A request that must not be sent twice
/// (``EnqueueOptions/isAtMostOnce``) and that the rules would retry is held, unless the status shows that the server has
/// not applied it.
public struct StatusRules: Hashable, Sendable {
    /// The statuses after which the request is retried: at most 32 ranges within 200 to 599. Default: none.
    ///
    /// Such an attempt counts towards ``EnqueueOptions/maximumAttempts``. With 401 or 407, the request is retried with
    /// the backoff instead of being held for ``HoldReason/auth``.
    public var retry: [ClosedRange<Int>]
    /// The statuses after which the request is given up, at the first such response: at most 32 ranges within 200 to 599,
    /// which must not overlap those of ``retry``. Default: none.
    public var dead: [ClosedRange<Int>]

    /// Creates rules.
    public init(retry: [ClosedRange<Int>] = [], dead: [ClosedRange<Int>] = []) {
        self.retry = retry
        self.dead = dead
    }
}

extension StatusRules {
    /// What happens to a request after a status.
    package enum Fate: Hashable, Sendable {
        case retry
        case dead
    }

    package var isEmpty: Bool { retry.isEmpty && dead.isEmpty }

    /// Returns what happens after a status; `nil` if neither list contains it.
    package func fate(of status: Int) -> Fate? {
        if retry.contains(where: { $0.contains(status) }) { return .retry }
        return dead.contains { $0.contains(status) } ? .dead : nil
    }

    /// Refuses ranges that are too many or out of range, and lists that overlap.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`.
    package func check() throws(QueueError) {
        for (name, ranges) in [("retry", retry), ("dead", dead)] {
            guard StatusRanges.areAccepted(ranges) else {
                throw QueueError(
                    .invalidOption,
                    "the \(name) statuses are \(quoted(StatusRanges.text(ranges))); they must be at most 32 statuses "
                        + "and ranges within 200 to 599"
                )
            }
        }
        guard let shared = retry.lazy.compactMap(overlap).first else { return }
        throw QueueError(
            .invalidOption,
            "both the retry statuses \(quoted(StatusRanges.text(retry))) and the dead statuses "
                + "\(quoted(StatusRanges.text(dead))) contain \(shared); a status must be in one of the lists"
        )
    }

    /// Returns the first status of a range that ``dead`` contains, too; `nil` if there is none.
    private func overlap(_ range: ClosedRange<Int>) -> Int? {
        dead.filter { $0.overlaps(range) }.map { max($0.lowerBound, range.lowerBound) }.min()
    }
}
