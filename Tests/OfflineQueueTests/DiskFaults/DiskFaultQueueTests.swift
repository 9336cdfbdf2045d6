internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Queues whose disk fails while they run.
@Suite(.timeLimit(.minutes(5))) struct DiskFaultQueueTests {
    @Test(arguments: DiskFault.Kind.ofCommits)
    func `a queue whose disk failed accepts, sends and changes nothing, and reports the cause`(
        kind: DiskFault.Kind
    )
        async throws
    {
        try DiskFault.install()
        let scratch = try ScratchDirectory(in: "/dev/shm")
        let directory = scratch.file("queue")
        let sent = Recorder<String>()
        let queue = try await open(directory, sent)
        try await queue.start()
        _ = try await queue.enqueue(Self.request, options: EnqueueOptions(id: "sent"))
        try await sent.wait { $0 == ["sent"] }
        _ = try await queue.result(of: "sent")
        let fault = try DiskFault(kind, at: directory, first: 1, persists: false)
        let error = try await #require(throws: QueueError.self) {
            _ = try await queue.enqueue(Self.request, options: EnqueueOptions(id: "unknown"))
        }
        fault.end()
        #expect(error.code == .storeFailed && error.path == "\(directory)/queue.sqlite")
        for await failure in queue.failures {
            #expect(failure == error)
            break
        }
        try await refuses { _ = try await queue.enqueue(Self.request) }
        try await refuses { _ = try await queue.cancel(["sent"]) }
        try await refuses { try await queue.flush() }
        await queue.stop()
        #expect(sent.values == ["sent"])
        let reopened = try await open(directory, sent)
        #expect(try await reopened.request("sent")?.summary.state == .delivered)
        await reopened.stop()
    }

    private static let request = QueueRequest(method: "POST", url: "http://example.com/")

    private func refuses(_ call: () async throws -> Void) async throws {
        let error = try await #require(throws: QueueError.self) { try await call() }
        #expect(error.code == .storeFailed)
    }

    private func open(_ directory: String, _ sent: Recorder<String>) async throws -> OfflineQueue {
        try await OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory),
            sender: Sender(sent: sent),
            gate: OpenGate()
        )
    }

    private struct Sender: AttemptSender {
        let sent: Recorder<String>

        func send(_ attempt: Attempt) async -> AttemptOutcome {
            sent.record(attempt.id)
            return .response(status: 200, headers: [], body: Data(), isTruncated: false)
        }

        func dropConnections() async {}
    }

    private struct OpenGate: HostGate {
        func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void)
            -> (any GateWatch)?
        {
            report(.reachable(generation: 1))
            return nil
        }
    }

    @Test func `the sequences of events end when the store fails`() async throws {
        try DiskFault.install()
        let directory = TemporaryDirectory()
        let queue = try await open(directory.path, Recorder())
        let events = try await queue.events
        let reading = Task {
            var kinds: [QueueEvent.Kind] = []
            for await event in events { kinds.append(event.kind) }
            return kinds
        }
        _ = try await queue.enqueue(Self.request)
        let fault = try DiskFault(.ofCommits[0], at: directory.path, first: 1, persists: true)
        for _ in 0..<3 { _ = try? await queue.enqueue(Self.request) }
        fault.end()
        #expect(await reading.value == [.enqueued], "the failed commits have changed nothing")
        await queue.stop()
    }

    @Test func `waiting calls return when the store fails`() async throws {
        try DiskFault.install()
        let directory = TemporaryDirectory()
        let queue = try await open(directory.path, Recorder())
        let id = try await queue.enqueue(Self.request).id
        let waiting = Task { try await queue.result(of: id) }
        let fault = try DiskFault(.ofCommits[0], at: directory.path, first: 1, persists: true)
        for _ in 0..<3 { _ = try? await queue.enqueue(Self.request) }
        fault.end()
        #expect(try await waiting.value?.summary.state == .pending)
        let failures = queue.failures
        await queue.stop()
        var count = 0
        for await _ in failures { count += 1 }
        #expect(count == 1)
    }
}
