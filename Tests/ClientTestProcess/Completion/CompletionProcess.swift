internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Synchronization

/// A process whose queue outlives it. It makes the requests of one seed, or delivers the requests that earlier
/// processes have left.
///
/// The process prints a line per event, each with a single write(2), so that a kill cannot lose a printed line:
///
/// - `handler N`: a handler or wait with this number has completed.
/// - `stored ID`: the queue has taken over a request.
/// - `cancelling ID`: the program is about to cancel a request in the queue.
/// - `sent ID`: an attempt begins.
/// - `ended ID STATE`: the queue reports the end of a request.
/// - `completed ID STATE`: the handler of the request's tag was called, and returns without an error.
/// - `final ID STATE`: the state of each stored request at the end of the last process.
/// - `violation TEXT`: a check of the process has failed.
/// - `over`: the process ends by itself.
final class CompletionProcess: Sendable {
    private let options: CompletionProcessOptions
    private let lineCount = Atomic(0)
    /// The ids of requests that the handler of their tag has received.
    private let completed = Recorder<String>()

    init(_ options: CompletionProcessOptions) {
        self.options = options
    }

    func run() async throws {
        if case .point(let name, let passage) = options.exitPoint { plan(name, passage) }
        if options.isLast {
            try await drain()
        } else {
            try await send()
        }
        ClientTestProcess.say("over")
        // Exits without waiting for tasks, as a program may do.
        exit(0)
    }

    private func plan(_ name: String, _ passage: Int) {
        CrashPoint.install { [self] point in
            guard point.rawValue == name else { return }
            if lineCount.wrappingAdd(1, ordering: .relaxed).newValue == passage { kill(getpid(), SIGKILL) }
        }
    }

    /// Prints a line, after which the process may kill itself.
    private func note(_ line: String) {
        ClientTestProcess.say(line)
        guard case .line(let beginning, let number) = options.exitPoint, line.hasPrefix(beginning) else {
            return
        }
        if lineCount.wrappingAdd(1, ordering: .relaxed).newValue == number { kill(getpid(), SIGKILL) }
    }

    private var store: CompletionStore {
        CompletionStore(directory: options.directory) { line in
            self.note(line)
            let words = line.split(separator: " ")
            if words[0] == "completed" { self.completed.record(String(words[1])) }
        }
    }

    private func send() async throws {
        let environment = try CompletionEnvironment(nil, hasPaths: false)
        let run = CompletionRun(
            seed: options.seed,
            environment,
            nil,
            timeout: options.timeout,
            store: store
        )
        await run.carryOut()
        for violation in run.record.violations { ClientTestProcess.say("violation \(violation)") }
    }

    // MARK: The last process

    /// Sends everything that earlier processes have left, and prints how each stored request ended.
    private func drain() async throws {
        let queue = try await store.open(seed: options.seed, isCalm: true)
        var events = try await queue.events.makeAsyncIterator()
        var left = Set(try await all(queue).filter { !$0.state.isFinal }.map(\.id))
        let waiting = try await queue.statistics().completions.reduce(0) { $0 + $1.count }
        let expected = left.count + waiting
        // Held requests wait for a decision of the user.
        _ = try await queue.release(matching: RequestFilter())
        try await queue.start()
        while !left.isEmpty, let event = await events.next() {
            store.note(event)
            if let id = event.requestID, event.newState?.isFinal == true { left.remove(id) }
        }
        try await completed.wait { Set($0).count >= expected }
        for request in try await all(queue) { note("final \(request.id) \(request.state.rawValue)") }
        await queue.stop()
    }

    private func all(_ queue: OfflineQueue) async throws -> [QueuedRequest] {
        var (query, requests) = (RequestQuery(limit: 1000), [QueuedRequest]())
        repeat {
            let page = try await queue.list(query)
            requests += page.requests
            query.after = page.next
        } while query.after != nil
        return requests
    }
}

/// The directory of a queue that outlives the process, and the journal of its requests.
struct CompletionStore: Sendable {
    let directory: String
    /// Called with each line; `nil` for no journal.
    let journal: (@Sendable (String) -> Void)?

    /// The tag of all requests; `nil` without a journal.
    var tag: String? { journal == nil ? nil : "law" }

    /// Opens the queue, and registers the handler of the tag, which throws at random.
    ///
    /// - Parameter isCalm: Whether each attempt ends its request. Default `false`.
    func open(seed: UInt64, isCalm: Bool = false) async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(directory: directory)
        (configuration.backoffBase, configuration.backoffCap) = (.milliseconds(1), .milliseconds(4))
        configuration.stopTimeout = .milliseconds(50)
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: RandomSender(seed: seed, isCalm: isCalm, journal: journal),
            gate: OpenGate()
        )
        let generator = SharedGenerator(seed: seed &* 43)
        guard let tag, let journal else { return queue }
        try await queue.onCompletion(tag: tag) { request in
            if generator.roll(4) == 0 { throw Refusal() }
            journal("completed \(request.summary.id) \(request.summary.state.rawValue)")
        }
        return queue
    }

    private struct Refusal: Error {}

    /// Notes an event if it reports the end of a request.
    func note(_ event: QueueEvent) {
        guard let id = event.requestID, let state = event.newState, state.isFinal else { return }
        journal?("ended \(id) \(state.rawValue)")
    }
}
