/// A source of the rows of an export: an open store, or a damaged one that is being salvaged.
package protocol ArchiveRows: Sendable {
    /// Returns the rows after a position, in the order in which they were stored, of about `bytes` bytes in total.
    /// Returns at least one row, or an empty array at the end of the cursor's part (waiting or dead requests).
    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow]
}

/// The operations of a store for export, import and inspection.
package protocol QueueArchive: ArchiveRows {
    /// Returns the given ids that are in the store. Waits for the commit in progress, so that ids of requests that are
    /// being written are included.
    func known(_ ids: [String]) async throws -> Set<String>

    /// Returns how much the store can accept before a limit is reached. Other callers may use this capacity at any
    /// time.
    func availableCapacity() async throws -> AvailableCapacity

    /// Stores imported requests in their exported states: all of them, or none if this throws. A request whose id is
    /// already in the store is skipped. The body of such a request may be ``StoredBody/gone(size:)``.
    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration]

    /// Restores the dependencies of imported requests. Until then these requests are held, because the requests that
    /// they depend on may come later in the import.
    func link(_ links: [DependencyLink]) async throws

    /// Returns whether a row refers to the spool file of this name, according to an index. Blocks, and must not be
    /// called on the cooperative thread pool.
    func isFileNamed(_ name: String) -> Bool

    /// Returns the spool files to which no row refers, according to the tables themselves. A damaged index has no
    /// effect on the result. A request that is finished or retried during the call may be missed, so the caller must
    /// first search for the names with ``isFileNamed(_:)``.
    func unusedFiles(among names: [String]) async throws -> [String]

    /// Checks the whole store without changing it.
    func inspect() async throws -> QueueVerification

    /// Checks the structure of the store for a limited time, without its rows and bodies.
    func quickCheck(within limit: Duration) async throws -> QuickCheck

    /// Reads a piece of the store, without delaying writers. Damage of the database is recorded, so that the next start
    /// reports it, as after damage that a request finds.
    func scan(_ position: ScanPosition, _ timing: ScanTiming) async throws -> ScanPiece

    /// Returns the record of the scans; a new one if there is none or it cannot be read.
    func scanRecord() async -> ScanRecord

    /// Stores the record of the scans.
    func keep(_ record: ScanRecord) async throws
}

/// A row of an export: a stored request with its body, or the error if it cannot be read.
package struct ArchivedRow: Sendable {
    package let cursor: ExportCursor
    package let id: String
    package let content: Result<(request: ArchivedRequest, body: StoredBody), QueueError>
}

/// How much a store can accept before a limit is reached.
package struct AvailableCapacity: Hashable, Sendable {
    /// The number of requests.
    package let requests: Int
    /// The total size of requests in bytes.
    package let bytes: Int64
    /// The free bytes of the file system, minus the reserve that the queue leaves free.
    package let diskBytes: Int64
}

/// An imported request that was validated. Its body is already stored inline or in the spool, unless the store knows
/// the request.
package struct RestoredRequest: Sendable {
    package let archived: ArchivedRequest
    /// The request with its new submitter.
    package let new: NewRequest
    /// The submitter in the export; `nil` if it has none.
    let exportedSubmitter: UInt32?

    /// - Parameter submitters: Who becomes the submitter of the request. Default: the one in the export.
    package init(
        _ archived: ArchivedRequest,
        _ new: NewRequest,
        as submitters: ImportedSubmitters = .original
    ) {
        exportedSubmitter = archived.submitter
        var archived = archived
        archived.submitter = submitters.submitter(insteadOf: archived.submitter)
        self.archived = archived
        self.new = new.submitted(by: archived.submitter.map { Submitter(user: $0) })
    }
}

/// The result of restoring one request.
package enum Restoration: Hashable, Sendable {
    case restored
    /// The request is already in the store, so nothing was changed.
    case known
    /// The id belongs to another request in the store, so nothing was changed. The value says why it is another one.
    case conflict(String)
    /// The request was not stored, because the store has a newer waiting request with the same replace key.
    case superseded
}

/// The dependencies of an imported request.
package struct DependencyLink: Hashable, Sendable {
    package let id: String
    package let dependencies: [String]
    /// Whether the request stays held after its dependencies were restored.
    package let isHeld: Bool
}
