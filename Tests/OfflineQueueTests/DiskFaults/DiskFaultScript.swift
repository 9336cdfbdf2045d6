internal import Foundation
internal import OfflineQueue

/// A fixed sequence of calls to a store, from opening to closing, during which the disk may fail at any call. The
/// properties are the results.
struct DiskFaultScript {
    /// The ids of the requests that the store accepted.
    private(set) var accepted: [String] = []
    private(set) var delivered: [String] = []
    /// The errors that the store threw, in call order.
    private(set) var errors: [any Error] = []
    /// Whether the checkpoint failed that the script itself requests from SQLite. The store does not report this error.
    private(set) var hasFailedToCheckpoint = false
    /// The steps that wrote successfully although the store had already failed. After its first failure, a store must
    /// write nothing.
    private(set) var writtenAfterFailure: [String] = []
    /// Whether every step succeeded.
    private(set) var isComplete = false
    /// The number of disk calls before the store was closed.
    private(set) var callsBeforeClosing = 0

    /// Whether any failure was reported.
    var hasTold: Bool { !errors.isEmpty || hasFailedToCheckpoint }

    private let directory: String
    private var store: SQLiteQueueStore?
    private var lane: Int64?
    private var claimed: [ClaimedRequest] = []

    /// Runs all steps, regardless of failures.
    static func run(in directory: String, calls: () -> Int) async -> DiskFaultScript {
        var script = DiskFaultScript(directory: directory)
        await script.run(calls)
        return script
    }

    private init(directory: String) {
        self.directory = directory
    }

    private mutating func run(_ calls: () -> Int) async {
        do {
            store = try await SQLiteQueueStore(directory: directory)
        } catch {
            callsBeforeClosing = calls()
            return errors.append(error)
        }
        for id in ["a", "b"] { await enqueue(id) }
        await claim()
        await conclude()
        for edit in [QueueEdit.hold, .release] { await editAll(edit) }
        await checkpoint()
        for id in ["c", "d"] { await enqueue(id) }
        callsBeforeClosing = calls()
        await store?.close()
        isComplete = !hasFailedToCheckpoint && accepted.count == 4 && delivered.count == 1
    }

    // MARK: Steps

    private mutating func enqueue(_ id: String) async {
        await write("enqueue \(id)") { script, store in
            let body = StoredBody.inline(Data(repeating: 0x61, count: 5000))
            let request = QueueRequest(method: "POST", url: "http://example.com/\(id)")
            let new = try NewRequest(request, options: EnqueueOptions(id: id), body: body)
            script.lane = try await store.enqueue([new])[0].lane.id
            script.accepted.append(id)
        }
    }

    private mutating func claim() async {
        guard let lane else { return }
        await write("claim") { script, store in
            script.claimed = try await store.claim([LaneClaim(lane: lane, limit: 1)])[0].requests
        }
    }

    private mutating func conclude() async {
        guard let request = claimed.first else { return }
        await write("conclude") { script, store in
            let conclusion = Conclusion(
                sequence: request.sequence,
                token: request.lease.token,
                verdict: .delivered(status: 200)
            )
            if try await store.conclude([conclusion])[0] { script.delivered.append(request.id) }
        }
    }

    private mutating func editAll(_ edit: QueueEdit) async {
        await write("\(edit) all") { _, store in
            _ = try await store.edit(edit, matching: RequestFilter(), isDryRun: false)
        }
    }

    private mutating func checkpoint() async {
        do {
            _ = try await store?.pragma("wal_checkpoint(TRUNCATE)")
        } catch {
            hasFailedToCheckpoint = true
        }
    }

    private mutating func write(
        _ name: String,
        _ step: (inout DiskFaultScript, SQLiteQueueStore) async throws -> Void
    ) async {
        guard let store else { return }
        let hasFailed = errors.contains { ($0 as? QueueError)?.code == .storeFailed }
        do {
            try await step(&self, store)
            if hasFailed { writtenAfterFailure.append(name) }
        } catch {
            errors.append(error)
        }
    }
}
