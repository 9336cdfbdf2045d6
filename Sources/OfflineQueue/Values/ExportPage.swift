public import Foundation

/// A part of an export. It contains whole lines, and pages are written one after the other.
public struct ExportPage: Hashable, Sendable {
    /// The lines of the page.
    public let data: Data
    /// The position of the next page; `nil` after the last page, which only ``ExportTrailer/finish()`` follows.
    public let next: ExportCursor?
    /// Requests that could not be exported, because their row or their body was changed or is missing.
    public let leftOut: [LeftOut]

    /// A request that is missing from an export, and the reason.
    public struct LeftOut: Hashable, Sendable {
        /// The id of the request, or a substitute when the id cannot be read.
        public let id: String
        /// The reason, for users.
        public let reason: String
    }
}

/// A position in an export, from which the next page continues.
public struct ExportCursor: Hashable, Sendable {
    package enum Part: String, Hashable, Sendable {
        case waiting
        case dead
    }

    package var part: Part
    /// The last position that was exported completely.
    package var position: Int64
    /// The position of a request whose body was exported in part; 0 for none.
    package var partial: Int64 = 0
    /// The number of bytes of that body that were exported.
    package var bodyBytes: Int64 = 0

    package init(part: Part, position: Int64) {
        self.part = part
        self.position = position
    }
}

extension ExportCursor: LosslessStringConvertible {
    /// The position as text, for a program that requests one page at a time.
    public var description: String { "\(part.rawValue).\(position).\(partial).\(bodyBytes)" }

    /// Parses a ``description``; returns `nil` for any other text.
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
