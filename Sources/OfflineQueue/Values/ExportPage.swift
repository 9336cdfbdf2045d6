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

/// The result of an import.
public struct ImportResult: Hashable, Sendable {
    /// The number of requests that were added to the queue or, if they had been given up, to its history.
    public internal(set) var imported = 0
    /// The number of requests in the export that the queue already knew. Nothing was changed for them.
    public internal(set) var known = 0
    /// The first requests that were not imported because their ids belong to other requests, at most
    /// ``maximumConflicts``.
    public internal(set) var conflicts: [Conflict] = []
    /// The number of all requests that were not imported because their ids belong to other requests.
    public internal(set) var conflictCount = 0
    /// The number of requests that were left out, because a newer request with the same replace key waits in the queue.
    public internal(set) var superseded = 0

    /// A request that was not imported, because its id belongs to another request.
    public struct Conflict: Hashable, Sendable {
        /// The id.
        public let id: String
        /// How the request with this id differs, in words for users.
        public let reason: String
    }

    /// The maximum number of requests in ``conflicts``: 1000.
    public static let maximumConflicts = 1000

    mutating func addConflict(_ id: String, _ reason: String) {
        conflictCount += 1
        if conflicts.count < Self.maximumConflicts { conflicts.append(Conflict(id: id, reason: reason)) }
    }
}
