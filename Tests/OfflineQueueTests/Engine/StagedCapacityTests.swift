internal import Foundation
internal import OfflineQueue
internal import Testing

/// The capacity that uploads use before and after a request uses them.
@Suite(.timeLimit(.minutes(5))) struct StagedCapacityTests {
    private let directory = TemporaryDirectory(marker: "staged")

    private func open(bytes: Int64 = 1 << 30) async throws -> OfflineQueue {
        try await directory.openQueue(gate: FakeGate(.notReachable), isStarted: false) {
            ($0.limits.bytes, $0.limits.laneShare) = (bytes, 1)
        }
    }

    private func enqueue(
        _ body: QueueRequest.Body,
        _ id: String? = nil,
        _ adjust: (inout EnqueueOptions) -> Void = { _ in },
        to queue: OfflineQueue
    ) async throws -> Receipt.Outcome {
        var options = EnqueueOptions(id: id)
        adjust(&options)
        let request = QueueRequest(method: "PUT", url: "https://example.com/", body: body)
        return try await queue.enqueue(request, options: options).outcome
    }

    private func code(_ body: () async throws -> Receipt.Outcome) async -> QueueError.Code? {
        do {
            _ = try await body()
        } catch {
            return (error as? QueueError)?.code
        }
        return nil
    }

    @Test func `requests can use the capacity that uploads do not use`() async throws {
        let queue = try await open(bytes: 200_000)
        _ = try await queue.appendToBody("a", Data(count: 150_000), at: 0)
        let body = QueueRequest.Body.data(Data(count: 60_000))
        #expect(await code { try await enqueue(body, to: queue) } == .queueFull)
        let dropped = try await enqueue(body, nil, { $0.whenFull = .dropNewest }, to: queue)
        #expect(dropped == .dropped)
        #expect(try await enqueue(.data(Data(count: 40_000)), to: queue) == .accepted)
        _ = try await queue.removeStagedBody("a")
        #expect(try await enqueue(body, to: queue) == .accepted)
        await queue.stop()
    }

    @Test func `an upload's bytes are counted once, before and after a request uses it`() async throws {
        let queue = try await open(bytes: 200_000)
        _ = try await queue.appendToBody("a", Data(count: 190_000), at: 0)
        #expect(try await enqueue(.staged(id: "a", size: 190_000), to: queue) == .accepted)
        await queue.stop()
    }

    @Test func `a known id is compared by body length after its upload was used`() async throws {
        let queue = try await open()
        _ = try await queue.appendToBody("a", Data(count: 1000), at: 0)
        #expect(try await enqueue(.staged(id: "a", size: 1000), "id", to: queue) == .accepted)
        #expect(try await enqueue(.staged(id: "a", size: 1000), "id", to: queue) == .known)
        for size: Int64 in [0, 999, 1001] {
            let wrong = await code { try await enqueue(.staged(id: "a", size: size), "id", to: queue) }
            #expect(wrong == .idConflict, "\(size)")
        }
        await queue.stop()
    }

    @Test func `a known id with an existing upload is compared by its bytes or refused`() async throws {
        let queue = try await open()
        let bytes = Data(repeating: 7, count: 70_000)
        #expect(try await enqueue(.data(bytes), "id", to: queue) == .accepted)
        _ = try await queue.appendToBody("short", bytes.prefix(10), at: 0)
        let wrong = await code { try await enqueue(.staged(id: "short", size: 70_000), "id", to: queue) }
        #expect(wrong == .wrongOffset)
        _ = try await queue.appendToBody("other", Data(count: 70_000), at: 0)
        let other = await code { try await enqueue(.staged(id: "other", size: 70_000), "id", to: queue) }
        #expect(other == .idConflict)
        _ = try await queue.appendToBody("same", bytes, at: 0)
        #expect(try await enqueue(.staged(id: "same", size: 70_000), "id", to: queue) == .known)
        await queue.stop()
    }

    @Test func `a request larger than the whole queue is refused instead of waiting`() async throws {
        let queue = try await open(bytes: 100)
        var options = EnqueueOptions()
        options.whenFull = .block
        let large = QueueRequest(method: "POST", url: "http://example.com/", body: Data(count: 200))
        await #expect(throws: QueueError.self) { try await queue.enqueue(large, options: options) }
        await queue.stop()
    }
}
