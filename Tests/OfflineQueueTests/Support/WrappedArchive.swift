internal import OfflineQueue

/// A store that is its own archive and forwards all calls to another store, except those that a test overrides.
protocol WrappedArchive: WrappedStore, QueueArchive {}

extension WrappedArchive {
    var archive: any QueueArchive { self }

    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow] {
        try await inner.archive.rows(after: cursor, bytes: bytes)
    }

    func known(_ ids: [String]) async throws -> Set<String> { try await inner.archive.known(ids) }

    func availableCapacity() async throws -> AvailableCapacity { try await inner.archive.availableCapacity() }

    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration] {
        try await inner.archive.restore(requests)
    }

    func link(_ links: [DependencyLink]) async throws { try await inner.archive.link(links) }

    func isFileNamed(_ name: String) -> Bool { inner.archive.isFileNamed(name) }

    func unusedFiles(among names: [String]) async throws -> [String] {
        try await inner.archive.unusedFiles(among: names)
    }

    func inspect() async throws -> QueueVerification { try await inner.archive.inspect() }

    func quickCheck(within limit: Duration) async throws -> QuickCheck {
        try await inner.archive.quickCheck(within: limit)
    }

    func scan(_ position: ScanPosition, _ timing: ScanTiming) async throws -> ScanPiece {
        try await inner.archive.scan(position, timing)
    }

    func scanRecord() async -> ScanRecord { await inner.archive.scanRecord() }

    func keep(_ record: ScanRecord) async throws { try await inner.archive.keep(record) }
}
