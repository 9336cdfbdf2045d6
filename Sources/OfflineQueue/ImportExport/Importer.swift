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
                if request.state != .dead { graph.add(request.id, waitsFor: request.dependencies) }
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
            for case .request(let request, _) in events where !request.dependencies.isEmpty {
                let isHeld = request.state == .held
                links.append(
                    DependencyLink(id: request.id, dependencies: request.dependencies, isHeld: isHeld)
                )
            }
            if !links.isEmpty { try await archive.link(links) }
        }
    }
}

/// Collects requests of an export, with their bodies, until the store restores them together.
struct ImportBatch {
    private static let rows = 256
    private static let bytes = 1 << 20

    private enum Body {
        case memory(Data)
        case file(BodyWriter)
        case skipped
    }

    private let spool: BodySpool
    private let submitters: ImportedSubmitters
    private var known: Set<String> = []
    private var current: (archived: ArchivedRequest, new: NewRequest, body: Body)?
    private var size = 0
    private(set) var requests: [RestoredRequest] = []
    private(set) var result = ImportResult()

    init(spool: BodySpool, submitters: ImportedSubmitters) {
        self.spool = spool
        self.submitters = submitters
    }

    var isFull: Bool { requests.count >= Self.rows || size >= Self.bytes }

    /// Sets the ids that the queue already knows. The bodies of requests with these ids are skipped.
    mutating func skip(_ ids: Set<String>) {
        known = ids
    }

    mutating func add(_ event: ArchiveParser.Event) async throws {
        switch event {
        case .request(let archived, let new): current = (archived, new, try body(of: archived))
        case .chunk(let bytes): try await append(bytes)
        case .complete: try await complete()
        case .void: current = nil
        }
    }

    private func body(of request: ArchivedRequest) throws -> Body {
        guard !known.contains(request.id) else { return .skipped }
        let size = request.body?.bytes ?? 0
        guard size > StoredBody.maximumInlineBytes else { return .memory(Data()) }
        return .file(try spool.makeWriter(limit: size))
    }

    private mutating func append(_ bytes: Data) async throws {
        switch current?.body {
        case .memory(let data): current?.body = .memory(data + bytes)
        case .file(let writer): try await writer.append(bytes)
        case .skipped, nil: break
        }
    }

    private mutating func complete() async throws {
        guard let (archived, validated, body) = current else { return }
        var new = validated
        current = nil
        size += new.id.utf8.count + Int(new.headBytes)
        switch body {
        case .skipped: new.body = .gone(size: archived.body?.bytes)
        case .memory(let data):
            size += data.count
            if !data.isEmpty { new.body = .inline(data) }
        case .file(let writer): new.body = .spooled(try await writer.finish())
        }
        requests.append(RestoredRequest(archived, new, as: submitters))
    }

    /// Counts the outcomes after the store has restored the batch, and removes the bodies of requests that were not
    /// restored.
    mutating func record(_ outcomes: [Restoration]) async {
        var unused: [String] = []
        for (request, outcome) in zip(requests, outcomes) {
            switch outcome {
            case .restored: result.imported += 1
            case .known: result.known += 1
            case .conflict(let reason): result.addConflict(request.archived.id, reason)
            case .superseded: result.superseded += 1
            }
            if outcome != .restored, let file = request.file { unused.append(file) }
        }
        (requests, size) = ([], 0)
        if !unused.isEmpty { await spool.remove(unused) }
    }

    /// Removes the bodies of the batch after a failed import.
    ///
    /// After an error that ends the store, rows may refer to the bodies. In that case they are kept, and the next start
    /// removes those that no row refers to.
    func giveUp(after error: any Error) async {
        guard (error as? QueueError)?.endsStore != true else { return }
        await spool.remove(requests.compactMap(\.file))
    }
}

extension RestoredRequest {
    /// The name of the body's spool file; `nil` if the body has no file.
    fileprivate var file: String? {
        if case .spooled(let body) = new.body { body.name } else { nil }
    }
}
