internal import ClientCore
internal import Foundation
internal import OfflineQueue
internal import Testing

/// What callers are told when things go otherwise than usual.
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

    @Test func `a first attempt that was the last allowed is told as the end`() async throws {
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
    func `what is larger than the whole queue is refused rather than waited for`() async throws {
        var limits = QueueLimits()
        limits.bytes = 100
        let queue = try await open(limits: limits)
        var options = EnqueueOptions()
        options.whenFull = .block
        let large = QueueRequest(method: "POST", url: "http://example.com/", body: Data(count: 200))
        await #expect(throws: QueueError.self) { try await queue.enqueue(large, options: options) }
        await queue.stop()
    }

    @Test func `a transfer that is ended before it begins is tried again`() async throws {
        let sender = SessionSender(session: SessionManager())
        let attempt = Attempt(
            id: "a",
            method: "POST",
            url: "http://127.0.0.1:9/",
            headers: [],
            body: .none,
            mayBeSentTwice: true
        )
        let outcome = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await sender.send(attempt)
        }.value
        let context = AttemptContext(
            origin: Origin(scheme: "http", host: "127.0.0.1", port: 9),
            mayBeSentTwice: true,
            hasKey: true,
            gateIsDown: false,
            accept: nil
        )
        let judgement = FailureTable.judge(outcome, of: context, now: start)
        #expect(judgement.verdict == .retry(countsAsAttempt: false))
    }

    @Test(arguments: [
        AttemptOutcome.status(303, [("Location", "/done")]), .status(302, [("Location", "http://portal/")]),
        .status(200, [("Content-Type", "text/html")]),
    ])
    func `what may have been applied is not sent again because a portal may have answered`(
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

    @Test func `a key header of the caller's is sent although the queue is to make none`() throws {
        var options = EnqueueOptions()
        options.idempotencyKey = .none
        var request = request
        request.headers = [.init(name: "Idempotency-Key", value: "mine")]
        let new = NewRequest(try RequestDraft(request, options: options), body: .none)
        #expect(HeaderText.decode(new.headers) + (new.key.map { [$0.header] } ?? []) == request.headers)
    }

    @Test(arguments: [-Double.infinity, -1e300, .nan, .infinity])
    func `no date is too strange to be refused or kept`(seconds: Double) async throws {
        let queue = try await open()
        var options = EnqueueOptions()
        options.notBefore = Date(timeIntervalSince1970: seconds)
        _ = try? await queue.enqueue(request, options: options)
        (options.notBefore, options.deadline) = (nil, Date(timeIntervalSince1970: seconds))
        _ = try? await queue.enqueue(request, options: options)
        await queue.stop()
    }
}
