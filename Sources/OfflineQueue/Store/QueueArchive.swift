/// What an export is made of.
package protocol ArchiveRows: Sendable {
    /// What is kept behind a place, in the order it came in: up to `bytes` of bodies, and at least one row if there
    /// is one. Empty at the end of that part.
    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow]
}

/// The side of a store by which it is looked through, carried elsewhere and put back.
package protocol QueueArchive: ArchiveRows {
    /// Those of the ids that the store knows.
    func known(_ ids: [String]) async throws -> Set<String>

    /// What the limits leave for more requests. It may change at any time.
    func room() async throws -> ArchiveRoom

    /// Puts requests back as they were, all of them or none. Those whose id is known change nothing.
    ///
    /// - Throws: ``QueueError``: `queueFull`, `storeFailed`, `stopped`.
    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration]

    /// Lets those wait for others again that are held because the others were not there yet.
    func link(_ links: [DependencyLink]) async throws

    /// Whether a row needs this file of the spool. Blocks, and is not for the cooperative pool.
    func isFileNamed(_ name: String) -> Bool

    /// Looks through everything and changes nothing.
    func inspect() async throws -> QueueVerification
}

/// A request as the store has it, and its body; or why that cannot be told.
package struct ArchivedRow: Sendable {
    package let cursor: ExportCursor
    package let id: String
    package let content: Result<(request: ArchivedRequest, body: NewRequest.Body), QueueError>
}

package struct ArchiveRoom: Hashable, Sendable {
    package let requests: Int
    package let bytes: Int64
    /// Of the file system, the reserve not counted.
    package let diskBytes: Int64
}

/// A request that was checked and whose body is where it belongs.
package struct RestoredRequest: Sendable {
    package let new: NewRequest
    package let archived: ArchivedRequest

    package init(_ archived: ArchivedRequest, _ draft: RequestDraft, body: NewRequest.Body) {
        self.archived = archived
        new = NewRequest(draft, body: body)
    }
}

package enum Restoration: Hashable, Sendable {
    case restored
    /// The id was known; nothing changed.
    case known
    /// A newer request with the same replace key waits already.
    case superseded
}

package struct DependencyLink: Hashable, Sendable {
    package let id: String
    package let after: [String]
    /// Whether somebody holds it all the same.
    package let isHeld: Bool
}
