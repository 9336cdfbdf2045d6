internal import Foundation
internal import NetwatchTestSupport
internal import QueueTestProcess
internal import Testing

@testable internal import OfflineQueue

/// Kills of a process that converts an existing queue to an encryption key in the background.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ConversionCrashTests {
    private let scratch = try! ScratchDirectory(in: "/dev/shm")
    private let keys: TestKeys
    private let record = CrashRecord()

    init() throws { keys = try TestKeys() }

    /// The queue has ten times as many requests as one transaction converts, and about one in sixteen has a body file.
    private static let producers = 64
    private static let requestsPerProducer = 10
    private static let total = producers * requestsPerProducer

    private var directory: String { scratch.file("queue") }

    @Test
    func `no kill during a conversion loses, changes or repeats a request, and the conversion continues`()
        async throws
    {
        let server = try CrashServer(seed: CrashScale.seed, record: record)
        defer { server.stop() }
        var options = TestProcessOptions(directory: directory, url: server.url)
        try await enqueueAll(options)

        options.mode = .convert
        options.encryptionKeyFile = try keys.write(TestKeys.first)
        // The three states after the kills: one body is copied; two bodies are copied, but no row refers to the copies;
        // rows refer to the copies, but the plaintext files still exist.
        try await kill(options, .bodySynced, .bodyNamed, .concluded)
        let begun = try await converted()
        try await kill(options, passage: 7, .beforeCommit, .afterCommit)
        let first = try await converted()
        #expect(0 < begun && begun < first && first < Self.total)

        options.encryptionKeyFile = try keys.write("\(TestKeys.second)\n\(TestKeys.first)")
        #expect(try await converted() == 0)
        try await kill(options, passage: 7, .beforeCommit, .afterCommit)
        let second = try await converted()
        #expect(0 < second && second < Self.total)

        // The next process sends while it converts.
        options.mode = .produce
        options.producers = 0
        options.edits = false
        try await kill(options, passage: 3, .responded)
        try await series.drain(options, record)
        let ledger = record.current
        #expect(ledger.violations.prefix(20) == [], "replay with NETWATCH_SEED=\(CrashScale.seed)")
        #expect(ledger.delivered.count + ledger.figures.heldAtMostOnce == Self.total)
        try await expectConverted()
    }

    private var series: CrashSeries {
        var series = CrashSeries(seed: CrashScale.seed, kills: 0)
        // Longer than a process takes to reach its crash point, even on a busy machine.
        series.timeLimit = .seconds(60)
        return series
    }

    private func enqueueAll(_ options: TestProcessOptions) async throws {
        let configuration = OfflineQueue.Configuration(directory: directory)
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: FakeSender(),
            gate: FakeGate()
        )
        // One after the other, so that every run converts the same requests in the same order.
        for producer in 0..<Self.producers {
            for number in 0..<Self.requestsPerProducer {
                let request = TestProcessRequest(producer: producer, number: number)
                let key = try await queue.accepted(request, url: options.url)
                record.note { $0.accepted(request.id, key: key) }
            }
        }
        await queue.stop()
    }

    /// Runs a process for each place, which kills itself there.
    private func kill(
        _ options: TestProcessOptions,
        passage: Int? = nil,
        _ places: TestProcessOptions.Crash.Place...
    ) async throws {
        for place in places {
            let crash = TestProcessOptions.Crash(place, passage: passage ?? (place == .bodyNamed ? 2 : 1))
            let reached = record.current.figures.places[place.rawValue]?.reached ?? 0
            try await series.kill(.crash(crash), options, run: 0, record)
            #expect(record.current.figures.places[place.rawValue]?.reached == reached + 1, "\(place)")
        }
    }

    /// Returns the number of requests that are encrypted with the current key.
    private func converted() async throws -> Int {
        let store = try await openStore()
        let use = try await store.statistics().encryption.first(where: \.isCurrent)
        await store.close()
        return use?.requests ?? 0
    }

    private func openStore() async throws -> SQLiteQueueStore {
        var settings = StoreSettings()
        settings.encryptionKeyFile = keys.path
        return try await SQLiteQueueStore(directory: directory, settings: settings)
    }

    /// Ends the conversion, and checks that the old key is not needed any more.
    private func expectConverted() async throws {
        let store = try await openStore()
        try await store.resealAll()
        #expect(try await store.statistics().encryption.map(\.isCurrent) == [true])
        await store.close()
        try keys.write(TestKeys.second)
        let rotated = try await openStore()
        #expect(rotated.openingNotes == [])
        let archive = rotated.archive
        _ = try await rotated.spool.sweep { archive.isFileNamed($0) }
        #expect(try await rotated.inspect().findings == [])
        await rotated.close()
    }
}

extension OfflineQueue {
    /// Enqueues a request of a test process, and returns its idempotency key.
    fileprivate func accepted(_ request: TestProcessRequest, url: String) async throws -> String? {
        let queued = QueueRequest(
            method: request.method,
            url: "\(url)/\(request.id)",
            body: Data(request.body)
        )
        var options = EnqueueOptions(lane: request.lane, isFIFO: request.isFIFO, id: request.id)
        options.isAtMostOnce = request.isAtMostOnce
        return try await enqueue(queued, options: options).idempotencyKey
    }
}
