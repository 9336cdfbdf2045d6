internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Synchronization

/// The queue of one seed, which takes over failed requests. Its attempts have random outcomes, and rows are cancelled
/// at random.
final class CompletionQueue: Sendable {
    private let queue: OfflineQueue
    /// The number of requests that were stored.
    let stored = Atomic(0)
    private let scratch: ScratchDirectory
    private let store: CompletionStore
    private let generator: SharedGenerator

    /// - Parameter store: Where the queue is stored. Default: `nil`, in a directory that is removed with this object.
    init(seed: UInt64, in store: CompletionStore? = nil) async throws {
        scratch = try ScratchDirectory(in: "/dev/shm")
        self.store = store ?? CompletionStore(directory: scratch.file("queue"), journal: nil)
        generator = SharedGenerator(seed: seed &* 31)
        queue = try await self.store.open(seed: seed)
        try await noteEnds()
        try await queue.start()
    }

    /// Writes the ends of requests to the journal, if there is one.
    private func noteEnds() async throws {
        guard store.journal != nil else { return }
        let events = try await queue.events
        Task { [store] in
            for await event in events { store.note(event) }
        }
    }

    func stop() async { await queue.stop() }

    private func roll(_ sides: Int) -> Int { generator.roll(sides) }

    func take(_ request: DataRequest) {
        var options = OfflineOptions(EnqueueOptions(isFIFO: roll(4) == 0), detached: roll(4) == 0)
        options.includesAmbiguousFailures = roll(4) != 0
        options.statuses = [400...599]
        if roll(8) == 0 { options.enqueue.maximumAttempts = 1 }
        request.queueIfOffline(queue, options).onQueued(queue: .global()) { receipt in
            self.stored.wrappingAdd(1, ordering: .relaxed)
            self.store.journal?("stored \(receipt.id)")
            guard self.roll(4) == 0 else { return }
            Task { _ = try? await self.queue.cancel([receipt.id]) }
        }
    }
}

/// Answers each attempt at random, immediately or within two milliseconds.
struct RandomSender: AttemptSender {
    private let generator: SharedGenerator
    private let isCalm: Bool
    private let journal: (@Sendable (String) -> Void)?

    /// - Parameters:
    ///   - isCalm: Whether each answer ends its request. Default `false`.
    ///   - journal: Called with the line `sent ID` at the beginning of each attempt. Default: `nil`.
    init(seed: UInt64, isCalm: Bool = false, journal: (@Sendable (String) -> Void)? = nil) {
        generator = SharedGenerator(seed: seed &* 37)
        (self.isCalm, self.journal) = (isCalm, journal)
    }

    func send(_ attempt: Attempt) async -> AttemptOutcome {
        journal?("sent \(attempt.id)")
        if generator.roll(2) == 0 { try? await Task.sleep(for: .microseconds(generator.roll(2000))) }
        let choice = generator.roll(8)
        return switch isCalm && choice != 2 ? 7 : choice {
        case 0: .failure(AttemptFailure(code: 7, errno: 111, phase: .connect, message: "refused"))
        case 1: .failure(AttemptFailure(code: 56, phase: .response, bytesSent: 9, message: "reset"))
        case 2: .response(status: 404, headers: [], body: Data("no".utf8), isTruncated: false)
        case 3: .response(status: 503, headers: [], body: Data(), isTruncated: false)
        case 4: .response(status: 401, headers: [], body: Data(), isTruncated: false)
        case 5: .response(status: 200, headers: [], body: Data("cut".utf8), isTruncated: true)
        default: .response(status: 200, headers: [], body: Data("stored".utf8), isTruncated: false)
        }
    }

    func dropConnections() async {}
}

private final class SharedGenerator: Sendable {
    private let generator: Mutex<SeededGenerator>

    init(seed: UInt64) {
        generator = Mutex(SeededGenerator(seed: seed))
    }

    func roll(_ sides: Int) -> Int {
        generator.withLock { Int.random(in: 0..<sides, using: &$0) }
    }
}

struct OpenGate: HostGate {
    func watch(host: String) -> AsyncStream<GateState> {
        AsyncStream { $0.yield(.reachable(generation: 1)) }
    }
}
