internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization
internal import Testing

@testable internal import ClientCore

/// The serial queue of requests, and the threads that run it.
@Suite(.timeLimit(.minutes(5))) struct SerialQueueTests {
    @Test func `work runs once, in order and one at a time`() async throws {
        let queue = SerialQueue(SessionThreads())
        let runs = Recorder<Int>()
        let running = Atomic(0)
        let overlaps = Atomic(0)
        for number in 0..<10_000 {
            queue.async {
                if running.add(1, ordering: .relaxed).newValue != 1 {
                    overlaps.add(1, ordering: .relaxed)
                }
                queue.checkIsolated()
                runs.record(number)
                running.subtract(1, ordering: .relaxed)
            }
        }
        try await runs.wait { $0.count == 10_000 }
        #expect(runs.values == Array(0..<10_000))
        let count = overlaps.load(ordering: .relaxed)
        #expect(count == 0)
    }

    @Test func `deferred work runs immediately if no other work is expected`() async throws {
        let (owner, runs) = (QueueOwner(), Recorder<Int>())
        owner.queue.async(on: owner, isDeferred: true) { _ in runs.record(1) }
        try await runs.wait { $0 == [1] }
    }

    @Test func `deferred work runs in order in the next turn`() async throws {
        let (owner, runs) = (QueueOwner(), Recorder<Int>())
        owner.queue.begin(on: owner) { $0.queue.setAwaiting(true) }
        owner.queue.async(on: owner, isDeferred: true) { _ in runs.record(1) }
        // The threads of the queue come from the same pool. One that was requested earlier begins earlier.
        for _ in 0..<2 {
            await withCheckedContinuation { turn in
                DispatchQueue.global(qos: .utility).async { turn.resume() }
            }
            #expect(runs.values.isEmpty)
        }
        owner.queue.async { runs.record(2) }
        try await runs.wait { $0.count == 2 }
        #expect(runs.values == [1, 2])
    }

    @Test func `begin runs on the caller's thread, and the work it submits on another`() async throws {
        let (owner, threads) = (QueueOwner(), Recorder<UInt>())
        let caller = currentThread()
        owner.queue.begin(on: owner) { owner in
            owner.assertIsolated()
            threads.record(currentThread())
            owner.queue.async { threads.record(currentThread()) }
        }
        #expect(threads.values.first == caller)
        try await threads.wait { $0.count == 2 }
        #expect(threads.values.last != caller)
    }

    // MARK: Requests

    /// The caller's thread may hold a lock that the program's callbacks need.
    @Test func `creating a request calls no user code on the caller's thread`() async throws {
        let server = try ScriptedServer()
        let (session, threads) = (SessionManager(engine: try TransferEngine()), Recorder<UInt>())
        session.retrier = Witness(threads)
        session.eventMonitors = [Witness(threads)]
        let caller = currentThread()
        for request in [session.request(server.url), session.request("ftp://host/")] {
            _ = await request.response()
        }
        // At least four calls: the request was resumed, was sent and has ended, and the retrier was asked.
        #expect(threads.values.count >= 4)
        #expect(!threads.values.contains(caller))
    }

    @Test(arguments: ["ftp://host/", "http://host:99999/"])
    func `a retrier is not called on the thread that creates the request`(url: String) async throws {
        let (session, threads) = (SessionManager(engine: try TransferEngine()), Recorder<UInt>())
        session.retrier = Witness(threads)
        let caller = currentThread()
        _ = await session.request(url).response()
        #expect(threads.values.count == 1)
        #expect(!threads.values.contains(caller))
    }
}

/// Records the threads it is called on.
private struct Witness: EventMonitor, RequestRetrier {
    private let threads: Recorder<UInt>

    init(_ threads: Recorder<UInt>) {
        self.threads = threads
    }

    func requestDidResume(_ request: Request) { threads.record(currentThread()) }

    func request(_ request: Request, willSend urlRequest: URLRequest) { threads.record(currentThread()) }

    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?) {
        threads.record(currentThread())
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        threads.record(currentThread())
        completion(false, 0)
    }
}

// See `SerialQueue`: glibc declares `pthread_self` as `const`.
@inline(never) private func currentThread() -> UInt { UInt(pthread_self()) }

/// An actor whose executor is a serial queue.
private actor QueueOwner {
    nonisolated let queue = SerialQueue(SessionThreads())

    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
}
