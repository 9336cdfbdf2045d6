internal import Foundation

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

/// The text form of statuses: `404,500-599`.
package enum StatusRanges {
    /// A description of the texts that ``parse(_:)`` accepts, for error messages.
    package static let acceptedForm =
        "at most 32 statuses, ranges and classes from 200 to 599, separated by commas, like `404`, `404,500-599` or `4xx`"

    /// Returns whether there are at most 32 ranges, all of them within 200 to 599.
    static func areAccepted(_ ranges: [ClosedRange<Int>]) -> Bool {
        ranges.count <= 32 && ranges.allSatisfy { (200...599).contains($0) }
    }

    /// Parses a comma-separated list of statuses (`404`), ranges (`500-599`) and classes (`5xx`). Spaces around a part
    /// are ignored.
    ///
    /// - Throws: ``QueueError`` with `invalidOption` and a message that quotes the text.
    package static func parse(_ text: String) throws(QueueError) -> [ClosedRange<Int>] {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let ranges = parts.compactMap { range($0.trimmingCharacters(in: .whitespaces)) }
        guard ranges.count == parts.count, areAccepted(ranges) else {
            throw QueueError(
                .invalidOption,
                "\(quoted(text)) is not a list of statuses; accepted: \(acceptedForm)"
            )
        }
        return ranges
    }

    /// Returns the ranges as text, which ``parse(_:)`` accepts unless it is empty.
    package static func text(_ ranges: [ClosedRange<Int>]) -> String {
        ranges.map(text).joined(separator: ",")
    }

    /// Returns a range as text: `404` or `500-599`.
    static func text(_ range: ClosedRange<Int>) -> String {
        "\(range.lowerBound)" + (range.count > 1 ? "-\(range.upperBound)" : "")
    }

    /// Parses a status, a range or a class. The bounds are not checked.
    static func range(_ text: String) -> ClosedRange<Int>? {
        if text.count == 3, text.hasSuffix("xx"), let digit = Int(text.dropLast(2)), (1...9).contains(digit) {
            return digit * 100...digit * 100 + 99
        }
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map {
            $0.allSatisfy(\.isWholeNumber) ? Int($0) : nil
        }
        guard (1...2).contains(bounds.count), let low = bounds[0], let high = bounds.last!, low <= high
        else { return nil }
        return low...high
    }
}
