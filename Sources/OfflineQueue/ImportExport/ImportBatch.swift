internal import Foundation

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
