public import Foundation

/// A part of an export: whole lines, to be written one page after the other.
public struct ExportPage: Hashable, Sendable {
    /// The lines.
    public let data: Data
    /// Where the next page begins; `nil` after the last, when only ``ExportSeal/finish()`` is missing.
    public let next: ExportCursor?
    /// Requests that could not be exported, because their row or their body is not what it was.
    public let leftOut: [LeftOut]

    /// A request that an export does not hold, and why.
    public struct LeftOut: Hashable, Sendable {
        /// Its id, or what there is in place of one.
        public let id: String
        /// Why it is left out, for people.
        public let reason: String
    }
}

/// A place in an export, to go on from.
public struct ExportCursor: Hashable, Sendable {
    package enum Part: String, Hashable, Sendable {
        case waiting
        case dead
    }

    package var part: Part
    /// What was exported last.
    package var position: Int64
    /// What was exported in part: a request with a long body. 0 when nothing was.
    package var partial: Int64 = 0
    /// How many bytes of that body were exported.
    package var bodyBytes: Int64 = 0

    package init(part: Part, position: Int64) {
        self.part = part
        self.position = position
    }
}

extension ExportCursor: LosslessStringConvertible {
    /// The place as text, for a program that asks for one page at a time.
    public var description: String { "\(part.rawValue).\(position).\(partial).\(bodyBytes)" }

    /// Reads what ``description`` gives; `nil` for anything else.
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
