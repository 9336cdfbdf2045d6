/// The source of the rows of an export.
package protocol ArchiveRows: Sendable {
    /// Returns the rows after a position, in the order in which they were stored, until they take about `bytes` bytes.
    /// Returns at least one row, unless there is none left in this part.
    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow]
}

/// The interface of a store for export, import and inspection.
package protocol QueueArchive: ArchiveRows {
    /// Returns those of the ids that the store knows. Waits for the commit in progress, so that a request that is being
    /// written is known.
    func known(_ ids: [String]) async throws -> Set<String>

    /// Returns the room that the limits leave for more requests. It may change at any time.
    func availableCapacity() async throws -> AvailableCapacity

    /// Restores requests as they were, all of them or none. Requests whose id is known change nothing.
    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration]

    /// Restores the dependencies of requests that are held because these dependencies were missing during the import.
    func link(_ links: [DependencyLink]) async throws

    /// Returns whether a row refers to this spool file. Blocks, and must not be called on the cooperative thread pool.
    func isFileNamed(_ name: String) -> Bool

    /// Checks the whole store and changes nothing.
    func inspect() async throws -> QueueVerification
}

/// A stored request with its body, or the reason why it cannot be read.
package struct ArchivedRow: Sendable {
    package let cursor: ExportCursor
    package let id: String
    package let content: Result<(request: ArchivedRequest, body: StoredBody), QueueError>
}

package struct AvailableCapacity: Hashable, Sendable {
    package let requests: Int
    package let bytes: Int64
    /// The free bytes of the file system, without the reserve.
    package let diskBytes: Int64
}

/// A validated request whose body is already in its final place.
package struct RestoredRequest: Sendable {
    package let archived: ArchivedRequest
    package let new: NewRequest

    package init(_ archived: ArchivedRequest, _ new: NewRequest) {
        self.archived = archived
        self.new = new
    }
}

package enum Restoration: Hashable, Sendable {
    case restored
    /// The id was already known; nothing was changed.
    case known
    /// A newer request with the same replace key is already waiting.
    case superseded
}

package struct DependencyLink: Hashable, Sendable {
    package let id: String
    package let after: [String]
    /// Whether the request stays held even when its dependencies are known.
    package let isHeld: Bool
}
