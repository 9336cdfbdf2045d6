internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization
internal import Testing

@testable internal import ClientCore

/// Random requests of random servers, with random calls in between: whatever happens, each handler and each
/// wait ends once.
@Suite(.timeLimit(.minutes(5))) struct CompletionModelTests {
    /// How many requests a seed makes, all at the same time.
    private static let requestsPerSeed = 24

    @Test(arguments: seeds(12)) func `each handler and each wait ends once`(seed: UInt64) async throws {
        let world = try World(seed: seed)
        for number in 0..<Self.requestsPerSeed { world.run(number) }
        await world.settle()
        // Waits count themselves; a handler that is called twice is one too many.
        let counts = world.counts
        #expect(
            counts.allSatisfy { $0.value == 1 },
            "NETWATCH_SEED=\(seed): \(counts.filter { $0.value != 1 })"
        )
        #expect(world.ordersAreKept, "NETWATCH_SEED=\(seed)")
    }
}

/// One seed's server, session and files, and what came of its requests.
private final class World: Sendable {
    private struct Log {
        var expected = 0
        var counts: [Int: Int] = [:]
        /// The handlers of each request, in the order they were called.
        var called: [Int: [Int]] = [:]
        /// They resume every request in the end.
        var hands: [Task<Void, Never>] = []
    }

    private let server: ScriptedServer
    private let scratch: ScratchDirectory
    private let engine: TransferEngine
    private let generator: Mutex<SeededGenerator>
    private let session: Mutex<SessionManager?>
    private let retrier: RandomRetrier
    private let log = Mutex(Log())
    private let ended = Recorder<Int>()
    private let handlerQueue = DispatchQueue(label: "handlers")

    init(seed: UInt64) throws {
        let faults = Mutex(SeededGenerator(seed: seed &* 31))
        server = try ScriptedServer { request in faults.withLock { Fault.random(for: request, &$0) } }
        scratch = try ScratchDirectory()
        _ = try scratch.write([UInt8](repeating: 7, count: 100_000), to: "body")
        engine = try TransferEngine()
        generator = Mutex(SeededGenerator(seed: seed))
        retrier = RandomRetrier(seed: seed &* 17)
        session = Mutex(SessionManager(engine: engine))
        session.withLock { $0?.retrier = seed.isMultiple(of: 3) ? nil : retrier }
    }

    var counts: [Int: Int] { log.withLock { $0.counts } }

    /// Handlers were numbered as they were added.
    var ordersAreKept: Bool { log.withLock { $0.called.values.allSatisfy { $0 == $0.sorted() } } }

    private func roll(_ sides: Int) -> Int {
        generator.withLock { Int.random(in: 0..<sides, using: &$0) }
    }

    // MARK: Requests

    func run(_ number: Int) {
        // An owner of its own: the session may be dropped meanwhile.
        guard let session = session.withLock({ $0 }) else { return }
        let request = make(number, session)
        addHandler(to: request, number)
        for _ in 0..<roll(6) { call(request, number) }
        if roll(20) == 0 { self.session.withLock { $0 = nil } }
        // One that stays suspended would be right not to end.
        let task = Task { [self] in
            try? await Task.sleep(for: .milliseconds(roll(60)))
            request.resume()
            if roll(4) == 0 { request.cancel() }
        }
        log.withLock { $0.hands.append(task) }
    }

    private func make(_ number: Int, _ session: SessionManager) -> Request {
        let url = "\(server.url)/\(number)"
        let body = Data(repeating: 1, count: 1 << roll(18))
        let file = URL(fileURLWithPath: scratch.file("body"))
        switch roll(6) {
        case 0: return session.upload(body, to: url)
        case 1: return session.upload(file, to: url, method: .put)
        case 2: return session.upload(InputStream(data: body), to: url)
        case 3: return session.download(url)
        case 4: return session.download(url, keepingPartialFileAt: keptFile(number))
        default: return session.request(url)
        }
    }

    /// Two requests for each place, of which one is refused.
    private func keptFile(_ number: Int) -> URL {
        URL(fileURLWithPath: scratch.file("kept\(number / 2)"))
    }

    private func call(_ request: Request, _ number: Int) {
        switch roll(9) {
        case 0: request.suspend()
        case 1, 2: request.resume()
        case 3: _ = roll(3) == 0 ? request.cancel() : request
        case 4: request.authenticate(user: "user", password: "password")
        case 5: validate(request)
        case 6: wait(for: request)
        case 7: cancelFromAfar(request)
        default: addHandler(to: request, number)
        }
    }

    private func validate(_ request: Request) {
        (request as? DataRequest)?.validate()
        (request as? DownloadRequest)?.validate()
    }

    private func cancelFromAfar(_ request: Request) {
        if roll(3) == 0 { DispatchQueue.global().async { request.cancel() } }
    }

    // MARK: Who is told

    /// Returns the number of one who waits to be told.
    private func expectation() -> Int {
        log.withLock { log in
            log.expected += 1
            log.counts[log.expected] = 0
            return log.expected
        }
    }

    private func addHandler(to request: Request, _ number: Int) {
        let id = expectation()
        let told: @Sendable () -> Void = { [self] in
            log.withLock { log in
                log.counts[id, default: 0] += 1
                log.called[number, default: []].append(id)
            }
            ended.record(id)
        }
        let queue = handlerQueue
        (request as? DataRequest)?.responseString(queue: queue) { _ in told() }
        (request as? DownloadRequest)?.responseData(queue: queue) { _ in told() }
    }

    private func wait(for request: Request) {
        let id = expectation()
        let isCancelled = roll(4) == 0
        let task = Task { [self] in
            if let request = request as? DataRequest { _ = await request.response() }
            if let request = request as? DownloadRequest { _ = await request.responseString() }
            log.withLock { $0.counts[id, default: 0] += 1 }
            ended.record(id)
        }
        if isCancelled { task.cancel() }
    }

    /// Ends what stalls, lets the retriers forget what they hold, and waits for everyone.
    func settle() async {
        for task in log.withLock({ $0.hands }) { await task.value }
        server.release()
        retrier.forget()
        let expected = log.withLock { $0.expected }
        // What has not ended by then never will: the counts say what it is.
        try? await ended.wait(patience: .seconds(120)) { $0.count >= expected }
        // A second call of a handler would stand behind the first.
        await withCheckedContinuation { done in handlerQueue.async { done.resume() } }
    }
}

/// What a server does wrong.
private enum Fault {
    static func random(
        for request: ScriptedServer.Request,
        _ generator: inout SeededGenerator
    ) -> ScriptedServer.Action {
        switch Int.random(in: 0..<12, using: &generator) {
        case 0:
            let challenge = ScriptedServer.Header("WWW-Authenticate", "Basic realm=\"netwatch\"")
            return .respond(status: 401, headers: [challenge])
        case 1: return .respond(status: 503, body: [1, 2, 3])
        case 2: return redirect(307, request)
        case 3: return redirect(303, request)
        case 4: return .close
        case 5: return .reset
        case 6: return .stall(then: .respond("late"))
        case 7: return .endlessHeaders
        case 8: return .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", then: .close)
        case 9: return .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", then: .stall(then: .close))
        default: return .respond(status: 200, body: [UInt8](repeating: 0x78, count: 50_000))
        }
    }

    private static func redirect(_ status: Int, _ request: ScriptedServer.Request) -> ScriptedServer.Action {
        .respond(status: status, headers: [.init("Location", "\(request.target)x")])
    }
}

/// Says yes, no, later, or nothing, and sometimes twice.
private final class RandomRetrier: RequestRetrier {
    private let generator: Mutex<SeededGenerator>
    private let held = Mutex<[RequestRetryCompletion]?>([])

    init(seed: UInt64) {
        generator = Mutex(SeededGenerator(seed: seed))
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        guard request.retryCount < 4 else { return completion(false, 0) }
        switch generator.withLock({ Int.random(in: 0..<6, using: &$0) }) {
        case 0: completion(true, 0)
        case 1:
            completion(true, 0.005)
            completion(false, 0)
        case 2: DispatchQueue.global().async { completion(true, 0) }
        case 3: hold(completion)
        case 4: break
        default: completion(false, 0)
        }
    }

    private func hold(_ completion: @escaping RequestRetryCompletion) {
        held.withLock { $0?.append(completion) }
    }

    /// Lets go of everything, now and from now on.
    func forget() {
        let forgotten = held.withLock { held in
            defer { held = nil }
            return held
        }
        withExtendedLifetime(forgotten) {}
    }
}
