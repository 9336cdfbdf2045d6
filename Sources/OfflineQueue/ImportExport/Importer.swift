internal import Foundation
internal import NetwatchEventLoop

/// Imports an export. It reads the file two to four times:
///
/// 1. to check the export and the room for it;
/// 2. if requests have dependencies: to check that none waits for itself;
/// 3. to restore the requests;
/// 4. if requests have dependencies: to link requests to dependencies that follow them in the export.
struct Importer {
    private static let pieceBytes = 256 * 1024

    private let store: any QueueStore
    private let file: any SpoolFile
    private let submitters: ImportedSubmitters
    private let freeBytes: @Sendable (Int64) async throws -> Void
    private var archive: any QueueArchive { store.archive }

    /// Creates an importer.
    ///
    /// - Parameters:
    ///   - store: The store that receives the requests.
    ///   - file: The export.
    ///   - submitters: Who becomes the submitter of the requests.
    ///   - freeBytes: Removes uploads that receive no more pieces, if the given number of bytes then fits into the
    ///     queue.
    init(
        store: any QueueStore,
        file: any SpoolFile,
        submitters: ImportedSubmitters,
        freeBytes: @escaping @Sendable (Int64) async throws -> Void
    ) {
        self.store = store
        self.file = file
        self.submitters = submitters
        self.freeBytes = freeBytes
    }

    func run() async throws -> ImportResult {
        let graph = try await check()
        if !graph.isEmpty { try await checkOrder(graph) }
        let result = try await restoreAll()
        if !graph.isEmpty { try await link() }
        return result
    }

    /// Passes the events of the whole file to `body`, one piece at a time.
    private func read(_ body: ([ArchiveParser.Event]) async throws -> Void) async throws {
        var parser = try ArchiveParser()
        var offset: Int64 = 0
        while true {
            try Task.checkCancellation()
            let piece = try await piece(at: offset)
            guard !piece.isEmpty else { break }
            offset += Int64(piece.count)
            try await body(try parser.consume(piece))
        }
        try parser.finish()
    }

    private func piece(at offset: Int64) async throws -> Data {
        do throws(SystemError) {
            return try await store.spool.read(file, at: offset, count: Self.pieceBytes)
        } catch {
            throw QueueError(.bodyFileUnusable, "the export cannot be read: \(error)")
        }
    }
}

// MARK: - Checking

extension Importer {
    /// The size of the requests that an import would add.
    private struct Sum {
        var requests = 0
        var bytes: Int64 = 0
        var diskBytes: Int64 = 0

        mutating func add(_ request: ArchivedRequest, _ new: NewRequest) {
            let size = new.headBytes + (request.body?.bytes ?? 0)
            diskBytes += size
            guard request.state != .dead else { return }
            requests += 1
            bytes += size
        }
    }

    /// Checks the whole export, and that its new requests fit into the queue. Returns the dependencies of the requests.
    private func check() async throws -> DependencyGraph {
        var (sum, pending): (Sum, [(ArchivedRequest, NewRequest)]) = (Sum(), [])
        var graph = DependencyGraph()
        try await read { events in
            for case .request(let request, let new) in events {
                pending.append((request, new))
                if request.state != .dead { graph.add(request.id, waitsFor: request.after) }
            }
            try await addUnknown(&pending, to: &sum)
        }
        try await freeBytes(sum.bytes)
        let room = try await archive.availableCapacity()
        let bytes = max(0, room.bytes - store.spool.stagedBytes.count)
        guard sum.requests <= room.requests, sum.bytes <= bytes else {
            throw QueueError(
                .queueFull,
                "the export has \(sum.requests) new requests, \(sum.bytes) bytes in total; the queue has room for "
                    + "\(room.requests) requests and \(bytes) bytes"
            )
        }
        // SQLite writes each row twice: first to the log, and later from the log to the database.
        guard 2 * sum.diskBytes <= room.diskBytes else {
            throw QueueError(
                .queueFull,
                "the export needs \(2 * sum.diskBytes) bytes of disk space; \(room.diskBytes) are available"
            )
        }
        return graph
    }

    /// Checks that no request of the export waits for itself through dependencies and the order of FIFO lanes.
    private func checkOrder(_ dependencies: DependencyGraph) async throws {
        var graph = dependencies
        try await read { events in
            for case .request(let request, let new) in events where request.state != .dead {
                graph.add(request.id, in: RestoredRequest(request, new, as: submitters).new.lane)
            }
        }
        do throws(QueueError) { try graph.check() } catch {
            throw QueueError(.invalidImport, "requests of the export wait for each other: \(error.message)")
        }
    }

    private func addUnknown(_ pending: inout [(ArchivedRequest, NewRequest)], to sum: inout Sum)
        async throws
    {
        guard !pending.isEmpty else { return }
        let known = try await archive.known(pending.map(\.0.id))
        for (request, new) in pending where !known.contains(request.id) { sum.add(request, new) }
        pending = []
    }
}

// MARK: - Restoring

extension Importer {
    private func restoreAll() async throws -> ImportResult {
        var batch = ImportBatch(spool: store.spool, submitters: submitters)
        do {
            try await read { events in
                let ids = events.compactMap { event in
                    if case .request(let request, _) = event { request.id } else { nil }
                }
                batch.skip(ids.isEmpty ? [] : try await archive.known(ids))
                for event in events {
                    try await batch.add(event)
                    if batch.isFull { try await restore(&batch) }
                }
            }
            try await restore(&batch)
        } catch {
            await batch.giveUp(after: error)
            throw error
        }
        return batch.result
    }

    private func restore(_ batch: inout ImportBatch) async throws {
        guard !batch.requests.isEmpty else { return }
        await batch.record(try await archive.restore(batch.requests))
    }

    private func link() async throws {
        try await read { events in
            var links: [DependencyLink] = []
            for case .request(let request, _) in events where !request.after.isEmpty {
                let isHeld = request.state == .held
                links.append(DependencyLink(id: request.id, after: request.after, isHeld: isHeld))
            }
            if !links.isEmpty { try await archive.link(links) }
        }
    }
}
