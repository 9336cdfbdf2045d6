internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue

/// The queue of one seed, which takes over requests. Its attempts have random outcomes, and rows are cancelled at
/// random.
final class CompletionQueue: Sendable {
    /// How a request comes into the queue.
    enum Way: CaseIterable {
        /// With `queueIfOffline`.
        case request
        /// With `queuesFailedRequests`, from the seed's session.
        case session
        /// From a background session.
        case background
    }

    private let queue: OfflineQueue
    /// The numbers of requests that were stored.
    let stored = Lock<[Way: Int]>([:])
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

    // MARK: Ways into the queue

    private var enqueueOptions: EnqueueOptions {
        var options = EnqueueOptions(isFIFO: roll(4) == 0)
        options.tag = store.tag
        if roll(8) == 0 { options.maximumAttempts = 1 }
        return options
    }

    private var offlineOptions: OfflineOptions {
        var options = OfflineOptions(enqueueOptions, detached: roll(4) == 0)
        options.includesAmbiguousFailures = roll(4) != 0
        options.statuses = [400...599]
        return options
    }

    func take(_ request: DataRequest) { request.queueIfOffline(queue, offlineOptions) }

    func takeFailedRequests(of session: SessionManager) {
        session.queuesFailedRequests(in: queue, options: offlineOptions) { [generator] _ in
            generator.roll(8) != 0
        }
    }

    func backgroundSession() -> SessionManager {
        let session = SessionManager.background(queue: queue, options: enqueueOptions)
        session.startRequestsImmediately = roll(2) == 0
        return session
    }

    /// Notes when the request is stored, and cancels some requests in the queue.
    ///
    /// - Parameters:
    ///   - number: The number of the request.
    ///   - program: The program, whose code runs when the request is stored.
    func watch(_ request: DataRequest, _ number: Int, _ way: Way, _ program: CompletionProgram) {
        request.onQueued(queue: .global()) { receipt in
            program.called(.stored, of: number)
            self.stored.withLock { $0[way, default: 0] += 1 }
            self.store.journal?("stored \(receipt.id)")
            guard self.roll(4) == 0 else { return }
            self.store.journal?("cancelling \(receipt.id)")
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

final class SharedGenerator: Sendable {
    private let generator: Lock<SeededGenerator>

    init(seed: UInt64) {
        generator = Lock(SeededGenerator(seed: seed))
    }

    func roll(_ sides: Int) -> Int {
        generator.withLock { Int.random(in: 0..<sides, using: &$0) }
    }
}

struct OpenGate: HostGate {
    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        report(.reachable(generation: 1))
        return nil
    }
}
