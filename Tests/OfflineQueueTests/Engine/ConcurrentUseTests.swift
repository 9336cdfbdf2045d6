internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Many tasks on several threads that use one queue on SQLite at the same time.
@Suite(.timeLimit(.minutes(5))) struct ConcurrentUseTests {
    private static let users = 16
    private static let rounds = 6

    private let directory = TemporaryDirectory(marker: "concurrent")
    private let executor = try! RotatingExecutor()

    /// Returns the executor of a task: ``RotatingExecutor`` for half of the tasks, the cooperative pool for the others.
    private func preference(_ number: Int) -> (any TaskExecutor)? {
        number.isMultiple(of: 2) ? executor : nil
    }

    @Test func `concurrent calls return correct results, and every consumer of events receives all changes`()
        async throws
    {
        let sender = FakeSender { _ in .status(200, body: "thanks") }
        let queue = try await directory.openQueue(sender)
        let events = try await queue.events
        let consumers = (0..<4).map { number in
            Task(executorPreference: preference(number)) { try await Self.states(accordingTo: events) }
        }
        let mismatches = try await withThrowingTaskGroup(of: [String].self) { group in
            for number in 0..<Self.users {
                group.addTask(executorPreference: preference(number)) {
                    var user = QueueUser(number, of: queue)
                    for round in 0..<Self.rounds { try await user.run(round) }
                    return user.mismatches
                }
            }
            return try await group.reduce(into: [String]()) { $0 += $1 }
        }
        let listed = try await queue.list(RequestQuery(limit: 1000)).requests
        let states = Dictionary(uniqueKeysWithValues: listed.map { ($0.id, $0.state) })
        await queue.stop()
        var known: [[String: QueuedRequest.State]] = []
        for consumer in consumers { known.append(try await consumer.value) }
        #expect(mismatches == [])
        #expect(states.count == 2 * Self.users * Self.rounds && known.allSatisfy { $0 == states })
        let delivered = states.filter { $0.value == .delivered }.keys.sorted()
        #expect(sender.attempts.map(\.id).sorted() == delivered, "each request was sent once")
    }

    /// Returns the states of all requests according to the events, when the queue has stopped.
    private static func states(
        accordingTo events: QueueEvents
    ) async throws -> [String: QueuedRequest.State] {
        var replay = EventReplay()
        for await event in events { try replay.apply(event) }
        return replay.requests.mapValues(\.state)
    }

    @Test func `a stop ends waiting calls, and calls that are repeated meanwhile fail with a defined error`()
        async throws
    {
        let queue = try await directory.openQueue(isStarted: false)
        try await queue.enqueue(id: "waiting")
        let begun = Recorder<Int>()
        let calls = (0..<Self.users).map { number in
            Task(executorPreference: preference(number)) { await Self.lastResult(number, queue, begun) }
        }
        try await begun.wait { Set($0).count == Self.users }
        await queue.stop()
        // A read that has begun before the store is closed may find the database closed.
        let refusals: Set = ["stopped", "storeUnavailable"]
        let accepted: [Set<String>] = [refusals.union(["pending"]), refusals, refusals, ["stopped"]]
        var unexpected: [String] = []
        for (number, call) in calls.enumerated() {
            let result = await call.value
            if !accepted[number % 4].contains(result) { unexpected.append("\(number): \(result)") }
        }
        #expect(unexpected == [])
    }

    /// Waits for the end of a request and returns its state, or repeats a call until it fails and returns the error.
    private static func lastResult(
        _ number: Int,
        _ queue: OfflineQueue,
        _ begun: Recorder<Int>
    ) async -> String {
        do {
            if number % 4 == 0 {
                begun.record(number)
                return try await queue.result(of: "waiting").map { "\($0.summary.state)" } ?? "unknown"
            }
            var calls = 0
            while true {
                switch number % 4 {
                case 1: _ = try await queue.request("waiting")
                case 2: _ = try await queue.list()
                default: try await queue.enqueue(id: "\(number)-\(calls)")
                }
                calls += 1
                if calls == 1 { begun.record(number) }
            }
        } catch {
            return (error as? QueueError).map { "\($0.code)" } ?? "\(error)"
        }
    }
}

/// One of the users of a queue. It edits only its own requests, so it knows the result of each of its calls.
private struct QueueUser {
    /// The results that were not the expected ones.
    private(set) var mismatches: [String] = []
    private let number: Int
    private let queue: OfflineQueue
    private let tag: String
    /// The expected states of the user's requests.
    private var states: [String: QueuedRequest.State] = [:]

    init(_ number: Int, of queue: OfflineQueue) {
        self.number = number
        self.queue = queue
        tag = "user-\(number)"
    }

    /// Enqueues a request that is sent immediately and one that is sent a day later, and then reads and edits them.
    mutating func run(_ round: Int) async throws {
        let (sent, kept) = ("sent-\(number)-\(round)", "kept-\(number)-\(round)")
        try await check("enqueue", enqueue(sent, after: nil), .accepted)
        try await check("enqueue again", enqueue(sent, after: nil), .known)
        try await check("enqueue for later", enqueue(kept, after: 86_400), .accepted)
        try await check("hold", queue.hold([kept, "unknown"]), [.done(.held), .unknown])
        try await check("hold reason", queue.request(kept)?.summary.holdReason, .user)
        try await check("counts", queue.counts[.held] > 0, true)
        try await check("statistics", queue.statistics().counts[.held] > 0, true)
        try await check("release", queue.release([kept]), [.done(.pending)])
        try await check("ids", queue.ids(beginningWith: kept, limit: 5), [kept])
        try await check("result", result(of: sent), "delivered 200 thanks")
        states[sent] = .delivered
        try await finish(kept, round)
        try await check("list", listed(), states)
    }

    private func enqueue(_ id: String, after delay: TimeInterval?) async throws -> Receipt.Outcome {
        try await queue.enqueue(id: id, host: "h\(number % 4).example") {
            $0.tag = tag
            $0.notBefore = delay.map { Date(timeIntervalSinceNow: $0) }
        }.outcome
    }

    /// Cancels the request, retries it so that it is sent now, or holds it.
    private mutating func finish(_ id: String, _ round: Int) async throws {
        switch round % 3 {
        case 0:
            try await check("cancel", queue.cancel([id]), [.done(.cancelled)])
            try await check("cancel again", queue.cancel([id]), [.refused(.cancelled)])
            states[id] = .cancelled
        case 1:
            try await check("retry", queue.retry([id]), [.done(.pending)])
            try await check("result of the retry", result(of: id), "delivered 200 thanks")
            states[id] = .delivered
        default:
            try await check("second hold", queue.hold([id]), [.done(.held)])
            states[id] = .held
        }
    }

    private func result(of id: String) async throws -> String? {
        try await queue.result(of: id).map { details in
            let body = String(decoding: details.response?.body ?? Data(), as: UTF8.self)
            return "\(details.summary.state) \(details.summary.status ?? 0) \(body)"
        }
    }

    /// Returns the states of the user's requests according to all pages of the list.
    private func listed() async throws -> [String: QueuedRequest.State] {
        var query = RequestQuery(limit: 5)
        query.tag = tag
        var states: [String: QueuedRequest.State] = [:]
        repeat {
            let page = try await queue.list(query)
            for request in page.requests { states[request.id] = request.state }
            query.after = page.next
        } while query.after != nil
        return states
    }

    private mutating func check<Value: Equatable>(_ call: String, _ value: Value, _ expected: Value) {
        if value != expected { mismatches.append("\(tag), \(call): \(value) instead of \(expected)") }
    }
}
