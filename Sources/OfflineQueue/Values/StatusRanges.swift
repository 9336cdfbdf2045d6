internal import Foundation

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
