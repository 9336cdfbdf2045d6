public import Foundation

/// A part of an export. An export consists of its pages, written one after the other, and a last line, which
/// ``ExportTrailer/finish()`` returns.
public struct ExportPage: Hashable, Sendable {
    /// The content of the page: whole lines.
    public let data: Data
    /// The position of the next page; `nil` if this is the last page.
    public let next: ExportCursor?
    /// The requests that are missing from the page, because their row or their body is damaged or cannot be read.
    public let leftOut: [LeftOut]

    /// A request that is missing from an export, and the reason.
    public struct LeftOut: Hashable, Sendable {
        /// The id of the request. If the id cannot be read, a text such as `number 17`, with the number of the
        /// request's row.
        public let id: String
        /// The reason, in words for users.
        public let reason: String
    }
}

/// A position in an export, from which the next page continues.
public struct ExportCursor: Hashable, Sendable {
    package enum Part: String, Codable, Hashable, Sendable {
        case waiting
        case dead
    }

    package var part: Part
    /// The position of the last request that was exported completely.
    package var position: Int64
    /// The position of the request whose body continues on the next page; 0 if there is none.
    package var partial: Int64 = 0
    /// The number of bytes of the `partial` request's body that were exported.
    package var bodyBytes: Int64 = 0

    package init(part: Part, position: Int64) {
        self.part = part
        self.position = position
    }
}

extension ExportCursor {
    /// The beginning of the next part; `nil` after the last one.
    var nextPart: ExportCursor? { part == .waiting ? ExportCursor(part: .dead, position: 0) : nil }
}

extension ExportCursor: LosslessStringConvertible {
    /// The position as text, for a client that requests one page at a time.
    public var description: String { "\(part.rawValue).\(position).\(partial).\(bodyBytes)" }

    /// Creates a position from its ``description``; `nil` if the text is not one.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().compactMap { Int64($0) }.filter { $0 >= 0 }
        guard parts.count == 4, numbers.count == 3, let part = Part(rawValue: String(parts[0])) else {
            return nil
        }
        self.init(part: part, position: numbers[0])
        (partial, bodyBytes) = (numbers[1], numbers[2])
    }
}
