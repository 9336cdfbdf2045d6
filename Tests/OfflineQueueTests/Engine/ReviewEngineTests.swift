internal import ClientCore
internal import Foundation
internal import OfflineQueue
internal import Testing

/// Results that callers get in unusual cases.
@Suite struct ReviewEngineTests {
    private let directory = TemporaryDirectory()

    private func open(
        _ sender: FakeSender = FakeSender(),
        limits: QueueLimits = QueueLimits()
    ) async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.limits = limits
        return try await OfflineQueue(configuration: configuration, sender: sender, gate: FakeGate())
    }

    private let request = QueueRequest(method: "POST", url: "http://example.com/")

    @Test func `a first attempt that uses up the allowed attempts is reported as dead`() async throws {
        let queue = try await open(FakeSender { _ in .refused })
        try await queue.start()
        var options = EnqueueOptions()
        options.maximumAttempts = 1
        let result = try await queue.send(request, options: options)
        guard case .dead = result else {
            Issue.record("\(result)")
            return await queue.stop()
        }
        await queue.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a request larger than the whole queue is refused instead of waiting`() async throws {
        var limits = QueueLimits()
        limits.bytes = 100
        let queue = try await open(limits: limits)
        var options = EnqueueOptions()
        options.whenFull = .block
        let large = QueueRequest(method: "POST", url: "http://example.com/", body: Data(count: 200))
        await #expect(throws: QueueError.self) { try await queue.enqueue(large, options: options) }
        await queue.stop()
    }

    @Test func `a transfer that is cancelled before it begins is retried`() async throws {
        let sender = SessionSender(session: SessionManager())
        let attempt = Attempt(
            id: "a",
            method: "POST",
            url: "http://127.0.0.1:9/",
            headers: [],
            body: .none,
            mayBeSentTwice: true
        )
        let context = AttemptContext(
            origin: Origin(scheme: "http", host: "127.0.0.1", port: 9),
            mayBeSentTwice: true,
            hasKey: true,
            gateIsDown: true,
            accept: nil
        )
        // The cancellation may reach each attempt at a different point.
        for _ in 0..<200 {
            let outcome = await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await sender.send(attempt)
            }.value
            let judgement = FailureTable.judge(outcome, of: context, now: start)
            #expect(judgement.verdict == .retry(countsAsAttempt: false))
        }
    }

    @Test(arguments: [
        AttemptOutcome.status(303, [("Location", "/done")]), .status(302, [("Location", "http://portal/")]),
        .status(200, [("Content-Type", "text/html")]),
    ])
    func `a request that may have been applied is held after a possible portal response`(
        outcome: AttemptOutcome
    ) {
        let context = AttemptContext(
            origin: Origin(scheme: "http", host: "example.com", port: 80),
            mayBeSentTwice: false,
            hasKey: false,
            gateIsDown: false,
            accept: "application/json"
        )
        #expect(FailureTable.judge(outcome, of: context, now: start).verdict == .held(.ambiguous))
    }

    @Test func `a key header of the caller is sent although the queue adds no key`() throws {
        var options = EnqueueOptions()
        options.idempotencyKey = .none
        var request = request
        request.headers = [.init(name: "Idempotency-Key", value: "mine")]
        let new = try NewRequest(request, options: options)
        #expect(HeaderText.decode(new.headers) + (new.key.map { [$0.header] } ?? []) == request.headers)
    }

    @Test(arguments: [-Double.infinity, -1e300, .nan, .infinity])
    func `extreme dates are stored or refused without a crash`(seconds: Double) async throws {
        let queue = try await open()
        var options = EnqueueOptions()
        options.notBefore = Date(timeIntervalSince1970: seconds)
        _ = try? await queue.enqueue(request, options: options)
        (options.notBefore, options.deadline) = (nil, Date(timeIntervalSince1970: seconds))
        _ = try? await queue.enqueue(request, options: options)
        await queue.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `waiting calls return when the store fails`() async throws {
        try DiskFault.install()
        let queue = try await open()
        let id = try await queue.enqueue(request).id
        let waiting = Task { try await queue.result(of: id) }
        let fault = try DiskFault(.ofCommits[0], at: directory.path, first: 1, persists: true)
        for _ in 0..<3 { _ = try? await queue.enqueue(request) }
        fault.end()
        #expect(try await waiting.value?.summary.state == .pending)
        let failures = queue.failures
        await queue.stop()
        var count = 0
        for await _ in failures { count += 1 }
        #expect(count == 1)
    }

    @Test func `pieces that are appended without waiting keep their order`() async throws {
        let spool = try await BodySpool.opening(directory.path)
        let pieces = (0..<200).map { Data(repeating: UInt8($0), count: 100 + $0) }
        let whole = try await spool.store(pieces.reduce(Data(), +))
        for _ in 0..<20 {
            let staged = StagedBodies(spool: spool, clock: ContinuousClock())
            try await staged.begin("a", limit: 1 << 20)
            try await withThrowingTaskGroup { group in
                var offset: Int64 = 0
                for piece in pieces {
                    let start = offset
                    group.addTask {
                        while true {
                            do throws(QueueError) {
                                _ = try await staged.append(piece, to: "a", at: start)
                                return
                            } catch { if error.code != .wrongOffset { throw error } }
                            await Task.yield()
                        }
                    }
                    offset += Int64(piece.count)
                }
                try await group.waitForAll()
            }
            #expect(try await staged.finish("a", size: whole.size).digest == whole.digest)
        }
    }
}
