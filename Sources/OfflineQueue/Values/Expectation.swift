internal import Foundation
internal import NetwatchTransport

/// The responses that count as delivery of a request.
public struct Expectation: Hashable, Sendable {
    /// The success statuses: ranges within 200 to 599. Default 200 to 299.
    public var statuses: [ClosedRange<Int>]
    /// The media type of the response, such as `application/json` or `image/*`; parameters are ignored. Default `nil`:
    /// any, or none.
    public var contentType: String?

    /// Creates an expectation.
    public init(statuses: [ClosedRange<Int>] = [200...299], contentType: String? = nil) {
        self.statuses = statuses
        self.contentType = contentType
    }

    /// Any 2xx status.
    public static let success = Expectation()
}

// MARK: - Text form

extension Expectation: CustomStringConvertible {
    /// The syntax that ``init(parsing:)`` accepts, for error messages.
    public static let acceptedForm =
        "statuses and a type, like `status=2xx`, `status=200-204,status=404` or `status=2xx,type=application/json`"

    /// Parses a comma-separated list such as `status=2xx,type=application/json`. `status` is a status, a range with a
    /// hyphen, or a class with `xx`, and may occur several times. `type` may occur once.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`, which quotes the text.
    public init(parsing text: String) throws(QueueError) {
        var (statuses, type): ([ClosedRange<Int>], String?) = ([], nil)
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let pair = part.split(separator: "=", maxSplits: 1).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            switch (pair.first, pair.dropFirst().first) {
            case ("status", let value?):
                guard let range = Self.range(value) else { throw Self.unreadable(text) }
                statuses.append(range)
            case ("type", let value?) where type == nil: type = value
            default: throw Self.unreadable(text)
            }
        }
        self.init(statuses: statuses.isEmpty ? [200...299] : statuses, contentType: type)
        try check()
    }

    /// The text that ``init(parsing:)`` parses to this expectation.
    public var description: String {
        let parts = statuses.map { range in
            "status=\(range.lowerBound)" + (range.count > 1 ? "-\(range.upperBound)" : "")
        }
        return (parts + (contentType.map { ["type=\($0)"] } ?? [])).joined(separator: ",")
    }

    private static func range(_ text: String) -> ClosedRange<Int>? {
        if text.hasSuffix("xx"), let digit = Int(text.dropLast(2)), (1...9).contains(digit) {
            return digit * 100...digit * 100 + 99
        }
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard (1...2).contains(bounds.count), let low = bounds[0], let high = bounds.last!, low <= high
        else { return nil }
        return low...high
    }

    private static func unreadable(_ text: String) -> QueueError {
        QueueError(.invalidOption, "\(quoted(text)) is not an expectation; accepted are \(acceptedForm)")
    }
}

// MARK: - Validation

extension Expectation {
    func check() throws(QueueError) {
        guard !statuses.isEmpty, statuses.count <= 32, statuses.allSatisfy({ (200...599).contains($0) })
        else {
            throw QueueError(
                .invalidOption,
                "the expectation \(quoted(description)) is not 1 to 32 ranges within the statuses 200 to 599"
            )
        }
        if let contentType, !Self.isMediaType(contentType) {
            throw QueueError(
                .invalidOption,
                "\(quoted(contentType)) is not a media type, like application/json or image/*"
            )
        }
    }

    private static func isMediaType(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return text.utf8.count <= 255 && parts.count == 2
            && parts.allSatisfy { HTTPToken.isValid(String($0)) }
    }

    /// Returns whether a response meets the expectation.
    package func isMet(status: Int, contentType found: String?) -> Bool {
        statuses.contains { $0.contains(status) } && isType(found)
    }

    /// Returns whether a response has the expected media type.
    package func isType(_ found: String?) -> Bool {
        guard let contentType = contentType?.lowercased() else { return true }
        let found = (found ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        if contentType == "*/*" { return !found.isEmpty }
        if contentType.hasSuffix("/*") { return found.hasPrefix(contentType.dropLast()) }
        return found == contentType
    }
}
