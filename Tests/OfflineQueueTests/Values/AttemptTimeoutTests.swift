internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The timeouts of an attempt, and overruns: timeouts after which the server may still be executing the request.
@Suite struct AttemptTimeoutTests {
    private let directory = TemporaryDirectory(marker: "timeouts")
    private let clock = TestStoreClock()

    private func timeouts(
        connect: Duration = .seconds(15),
        response: Duration = .seconds(300),
        total: Duration? = nil
    ) -> AttemptTimeouts {
        var timeouts = AttemptTimeouts()
        (timeouts.connect, timeouts.response, timeouts.total) = (connect, response, total)
        return timeouts
    }

    @Test func `the timeouts have the documented defaults`() {
        let usual = AttemptTimeouts()
        #expect(usual == timeouts())
        #expect(usual.longest(sending: 0) == .seconds(900))
        #expect(usual.longest(sending: 8192 * 60) == .seconds(960))
        #expect(timeouts(total: .seconds(5)).longest(sending: 8192 * 60) == .seconds(5))
    }

    @Test(arguments: [
        (Duration.seconds(300), 0, Duration.seconds(300)), (.seconds(300), 1, .seconds(600)),
        (.seconds(300), 3, .seconds(2400)), (.seconds(300), 4, .seconds(3600)),
        (.seconds(300), 1000, .seconds(3600)),
        (.seconds(7200), 3, .seconds(7200)), (.milliseconds(1), 1, .milliseconds(2)),
    ])
    func `each overrun doubles the timeout, up to an hour or the given timeout`(
        response: Duration,
        overruns: Int,
        expected: Duration
    ) {
        let extended = timeouts(response: response, total: response).extended(by: overruns)
        #expect(extended == timeouts(response: expected, total: expected))
    }

    @Test(arguments: [Duration.zero, .microseconds(999), .seconds(86_401), .seconds(-1)])
    func `a timeout that is out of range is refused`(timeout: Duration) {
        for given in [timeouts(connect: timeout), timeouts(response: timeout), timeouts(total: timeout)] {
            let refusal = #expect(throws: QueueError.self) { try new { $0.timeouts = given } }
            #expect(refusal?.code == .invalidOption)
        }
    }

    @Test func `timeouts survive a restart and the history`() async throws {
        let given = [
            timeouts(), timeouts(connect: .milliseconds(1)), timeouts(response: .milliseconds(1500)),
            timeouts(connect: .seconds(86_400), response: .seconds(86_400), total: .seconds(86_400)),
        ]
        let store = try await directory.openStore(clock: clock)
        for (index, timeouts) in given.enumerated() {
            try await store.enqueue(try new("\(index)") { $0.timeouts = timeouts })
        }
        await store.close()
        let again = try await directory.openStore(clock: clock)
        let lane = try await again.restart()[0].id
        let claimed = try await again.claim(of: lane).requests
        #expect(claimed.map(\.options.timeouts) == given)
        for request in claimed { try await again.conclude(request, .dead(reason: "HTTP 404")) }
        _ = try await again.edit(.retry(newKey: false), claimed.map(\.id))
        #expect(try await again.claim(of: lane).requests.map(\.options.timeouts) == given)
    }

    @Test func `an export contains the timeouts, and missing ones mean the defaults`() async throws {
        let files = TemporaryDirectory()
        let own = timeouts(response: .seconds(1800), total: .seconds(3600))
        let path = try await withQueue(directory) { queue, store in
            try await store.enqueue(try new("own") { $0.timeouts = own }, try new("usual"))
            return try file(try await queue.exported(), in: files)
        }
        #expect(
            try String(contentsOfFile: path, encoding: .utf8).components(
                separatedBy: "\"total_timeout_seconds\""
            ).count
                == 2
        )
        try await withQueue(TemporaryDirectory()) { queue, _ in
            _ = try await queue.importRequests(from: path)
            #expect(try await queue.request("own")?.timeouts == own)
            #expect(try await queue.request("usual")?.timeouts == AttemptTimeouts())
        }
    }

    // MARK: Overruns

    /// Enqueues a request, and stores an attempt of it that ended with an overrun. Returns the lane.
    private func overrun(_ store: SQLiteQueueStore, isFIFO: Bool = false) async throws -> Int64 {
        try await store.enqueue(try new("a", isFIFO: isFIFO))
        let lane = try await store.restart()[0].id
        try await overrun(store, in: lane)
        return lane
    }

    private func overrun(_ store: SQLiteQueueStore, in lane: Int64, for timeout: Duration = .seconds(3600))
        async throws
    {
        let request = try #require(try await store.claim(of: lane).requests.first)
        try await store.conclude(request, .retry(countsAsAttempt: true), delay: timeout, overrun: timeout)
    }

    @Test(arguments: [false, true])
    func `the next attempt waits for the timeout despite path changes and flushes`(isFIFO: Bool)
        async throws
    {
        let store = try await directory.openStore(clock: clock)
        let lane = try await overrun(store, isFIFO: isFIFO)
        let details = try #require(try await store.details(of: "a"))
        #expect(details.busyUntil == (clock.now.wall + .seconds(3600)).date)
        #expect(details.timeouts.response == .seconds(600))
        clock.advance(.seconds(3599))
        #expect(try await store.claim(of: lane, releasing: HoldReason.releasableByRestart).requests.isEmpty)
        clock.advance(.seconds(1))
        let next = try #require(try await store.claim(of: lane, releasing: []).requests.first)
        #expect(next.overruns == 1 && next.attempts == 2)
        #expect(try await store.details(of: "a")?.busyUntil == nil)
    }

    @Test func `the wait after an overrun may exceed every backoff, also after a restart`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await overrun(store)
        await store.close()
        let again = try await directory.openStore(clock: clock)
        _ = try await again.recover(releasing: HoldReason.releasableByRestart)
        for _ in 0..<3 {
            clock.advance(.seconds(1000))
            #expect(try await again.claim(of: lane, releasing: []).requests.isEmpty)
        }
        clock.advance(.seconds(600))
        #expect(try await again.claim(of: lane).requests.count == 1)
    }

    @Test(arguments: [
        Duration.seconds(-400 * 86_400), .seconds(-1800), .seconds(1800), .seconds(400 * 86_400),
    ])
    func `a wall clock that is set does not change the wait after an overrun`(step: Duration) async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await overrun(store)
        clock.stepWall(step)
        clock.advance(.seconds(3599))
        #expect(try await store.claim(of: lane).requests.isEmpty)
        clock.advance(.seconds(1))
        #expect(try await store.claim(of: lane).requests.count == 1)
    }

    @Test(arguments: [false, true])
    func `a release does not shorten the wait after an overrun`(isByFilter: Bool) async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await overrun(store)
        for edit in [QueueEdit.hold, .release] {
            if isByFilter {
                _ = try await store.edit(edit, matching: RequestFilter(), isDryRun: false)
            } else {
                _ = try await store.edit(edit, ["a"])
            }
        }
        clock.advance(.seconds(3599))
        #expect(try await store.claim(of: lane).requests.isEmpty)
        clock.advance(.seconds(1))
        #expect(try await store.claim(of: lane).requests.count == 1)
    }

    @Test func `a manual retry resets the conflict age`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await overrun(store)
        _ = try await store.edit(.retry(newKey: false), ["a"])
        let request = try #require(try await store.claim(of: lane).requests.first)
        #expect(request.overruns == 0)
        #expect(try await store.details(of: "a")?.busyUntil == nil)
    }

    @Test func `the next attempt has the doubled timeout, and an overrun delays it`()
        async throws
    {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(1), .milliseconds(1))
        }
        var options = EnqueueOptions(id: "a")
        options.timeouts.response = .milliseconds(200)
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: "http://a.example/"), options: options)
        for doublings in 0..<3 {
            let attempt = await sender.nextAttempt()
            #expect(attempt.timeouts.response == .milliseconds(200) * (1 << doublings))
            var failure = AttemptFailure(code: 28, phase: .response, message: "late")
            failure.overrun = attempt.timeouts.response
            sender.answer(attempt, .failure(failure))
        }
        #expect(try await queue.request("a")?.attempts.count ?? 0 >= 2)
        await queue.stop()
    }
}
