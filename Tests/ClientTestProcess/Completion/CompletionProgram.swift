internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// The program's code in the hooks of one seed. It acts at random: cancels, suspends and resumes a request, adds a
/// handler, sends credentials, releases the sessions, or starts another request.
///
/// The first, second, … call of a hook for a request makes the same choices on every run.
///
/// Some completions are never called. The completion guarantee for them:
///
/// - If the program releases the completion, its documented default is the answer, and the request continues.
/// - If the program retains the completion, the request waits until it is cancelled or loses its session, and then ends
///   like any other request. The completion then retains nothing of the request.
///
/// A retained completion is therefore either released by ``forget()``, or its request is cancelled there and the
/// completion is retained beyond the check for leaks.
final class CompletionProgram: Sendable {
    private struct Call: Hashable {
        let hook: CompletionHook
        let number: Int?
    }

    private struct WeakRequest {
        weak var request: Request?
    }

    private struct Unanswered {
        let completion: any Sendable
        /// The number of the request that must be cancelled; `nil` if the completion is released instead.
        let cancelledRequest: Int?
    }

    private struct State {
        /// `nil` before ``begin(_:)`` and after ``close()``.
        var run: CompletionRun?
        var requests: [Int: WeakRequest] = [:]
        var visits: [Call: UInt64] = [:]
        var calls = [Int](repeating: 0, count: CompletionHook.allCases.count)
        var actions = [Int](repeating: 0, count: CompletionHook.allCases.count)
        /// The number of requests that the hooks have started.
        var startedCount = 0
        /// The completions that are retained without being called; `nil` after ``forget()``, when no more are retained.
        var unanswered: [Unanswered]? = []
        /// The completions of cancelled requests.
        var abandoned: [any Sendable] = []
    }

    /// The maximum number of requests that the hooks of a seed start, and the number before their first one.
    private static let maximumStarted = 4
    private static let lastOrdinaryNumber = 100

    private let seed: UInt64
    private let state = Lock(State())

    init(seed: UInt64) { self.seed = seed }

    /// Lets the hooks act on a run. Until ``close()``, this object and the run form a retain cycle.
    func begin(_ run: CompletionRun) { state.withLock { $0.run = run } }

    /// Ends all actions that add an expected completion, or that need the run for another reason. Afterwards the run
    /// can wait for the completions that are expected.
    func close() {
        let run = state.withLock { $0.run.take() }
        withExtendedLifetime(run) {}
    }

    // MARK: Requests

    /// Makes a request known by its number.
    func add(_ request: Request, _ number: Int) {
        state.withLock { $0.requests[number] = WeakRequest(request: request) }
    }

    private func request(_ number: Int) -> Request? { state.withLock { $0.requests[number]?.request } }

    /// Returns the number in a URL of the seed, `http://HOST/SEED/NUMBER`; `nil` for any other URL.
    static func number(in url: URL?) -> Int? {
        let parts = url?.path.split(separator: "/") ?? []
        return parts.count > 1 ? Int(parts[1]) : nil
    }

    // MARK: Calls

    /// Counts a call of a hook, and acts at random.
    ///
    /// - Returns: The source of the hook's other choices.
    @discardableResult
    func called(_ hook: CompletionHook, of number: Int?) -> SeededGenerator {
        called(hook, of: number, number.flatMap { request($0) })
    }

    /// Counts a call of a hook that receives the request itself, and acts at random.
    @discardableResult
    func called(_ hook: CompletionHook, of request: Request) -> SeededGenerator {
        called(hook, of: Self.number(in: request.request?.url), request)
    }

    private func called(_ hook: CompletionHook, of number: Int?, _ request: Request?) -> SeededGenerator {
        let visit = state.withLock { state in
            state.calls[hook.rawValue] += 1
            state.visits[Call(hook: hook, number: number), default: 0] += 1
            return state.visits[Call(hook: hook, number: number)]!
        }
        var generator = SeededGenerator(
            seed: seed &* 7_368_787 &+ UInt64(hook.rawValue) &* 104_729 &+ UInt64(number ?? 999) &* 1009
                &+ visit
        )
        guard generator.roll(hook.sides) == 0, act(on: request, generator.roll(32)) else { return generator }
        state.withLock { $0.actions[hook.rawValue] += 1 }
        return generator
    }

    /// The numbers of calls and of actions by the raw values of the hooks.
    var counts: (calls: [Int], actions: [Int]) { state.withLock { ($0.calls, $0.actions) } }

    // MARK: Actions

    /// - Returns: Whether the program has acted. The number of requests that it starts is limited, and after
    ///   ``close()`` few actions remain.
    private func act(on request: Request?, _ choice: Int) -> Bool {
        if choice == 0 { return dropSessions() }
        guard let request, choice < 26 else { return startAnother() }
        switch choice {
        case 1...4: request.cancel()
        case 5...14: request.suspend().resume()
        case 15...23: return addHandler(to: request)
        default: request.authenticate(user: "user", password: "password")
        }
        return true
    }

    private func dropSessions() -> Bool {
        guard let run = state.withLock({ $0.run }) else { return false }
        run.dropSessions()
        return true
    }

    /// Adds a handler. Its place among the request's handlers is not checked, because other threads may be adding
    /// handlers, too.
    private func addHandler(to request: Request) -> Bool {
        // Under the lock, so that nothing is expected after `close()`.
        let added = state.withLock { state in state.run.map { (run: $0, id: $0.record.expect()) } }
        guard let added else { return false }
        let (run, id) = added
        run.countHandler()
        if let request = request as? DataRequest {
            request.response(queue: run.queue) { _ in run.record.note(id, of: nil) }
        }
        if let request = request as? DownloadRequest {
            request.response(queue: run.queue) { _ in run.record.note(id, of: nil) }
        }
        return true
    }

    private struct Started {
        let run: CompletionRun
        let session: SessionManager
        let id: Int
        let number: Int
    }

    private func startAnother() -> Bool {
        let started = state.withLock { state -> Started? in
            guard let run = state.run, state.startedCount < Self.maximumStarted, let session = run.session
            else { return nil }
            state.startedCount += 1
            let number = Self.lastOrdinaryNumber + state.startedCount
            return Started(run: run, session: session, id: run.record.expect(), number: number)
        }
        guard let started else { return false }
        let (run, id, number) = (started.run, started.id, started.number)
        let request = started.session.request("\(run.plainServer)/\(seed)/\(number)")
        run.began(request, number, run.way)
        run.countHandler()
        request.response(queue: run.queue) { _ in run.record.note(id, of: nil) }
        request.resume()
        return true
    }

    // MARK: Completions without an answer

    /// Retains a completion without calling it.
    ///
    /// - Parameters:
    ///   - number: The number of the request that waits for the completion.
    ///   - isCancelled: Whether the request is cancelled later. Otherwise the completion is released later.
    func retain(_ completion: any Sendable, of number: Int?, isCancelled: Bool) {
        state.withLock { state in
            state.unanswered?.append(
                Unanswered(completion: completion, cancelledRequest: isCancelled ? number : nil)
            )
        }
    }

    /// Releases the retained completions, or cancels their requests. From now on none is retained.
    func forget() {
        let unanswered = state.withLock { state in
            let unanswered = state.unanswered.take() ?? []
            state.abandoned += unanswered.filter { $0.cancelledRequest != nil }.map(\.completion)
            return unanswered
        }
        for number in unanswered.compactMap(\.cancelledRequest) { request(number)?.cancel() }
    }
}

extension SeededGenerator {
    mutating func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &self) }
}
