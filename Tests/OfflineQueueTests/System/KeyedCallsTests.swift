internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Calls of code that may never return, with a clock that the test sets.
@Suite(.timeLimit(.minutes(5))) struct KeyedCallsTests {
    private let clock = ManualClock()
    private let started = Recorder<Int>()
    private let latch = Latch()

    private func makeCalls() -> KeyedCalls<Int> { KeyedCalls(timeout: .seconds(600), clock: clock) }

    /// Begins a call that returns when the latch opens, even if it is cancelled.
    @discardableResult
    private func hang(_ calls: KeyedCalls<Int>, for key: Int) -> Task<Void, any Error> {
        Task { [started, latch] in
            try await calls.run(for: key) {
                started.record(key)
                await latch.wait()
            }
        }
    }

    private func refusal(of key: Int, _ calls: KeyedCalls<Int>) async -> KeyedCalls<Int>.Refusal? {
        do {
            try await calls.run(for: key) {}
            return nil
        } catch {
            return error as? KeyedCalls<Int>.Refusal
        }
    }

    @Test func `keys with overdue calls do not delay other keys, up to a number of such keys`() async throws {
        let (calls, limit) = (makeCalls(), KeyedCalls<Int>.maximumOverdueKeys)
        for key in 1..<limit { hang(calls, for: key) }
        try await started.wait { $0.count == limit - 1 }
        clock.advance(by: .seconds(600))
        #expect(try await calls.run(for: 0) { "returned" } == "returned")
        hang(calls, for: limit)
        try await started.wait { $0.count == limit }
        #expect(try await calls.run(for: 0) { "returned" } == "returned", "the last call is not overdue yet")
        clock.advance(by: .seconds(600))
        #expect(await refusal(of: 0, calls) == .tooManyOverdueKeys)
        #expect(await refusal(of: 1, calls) == .overdue, "the maximum number of calls is overdue")
        latch.open()
        try await poll { await refusal(of: 0, calls) == nil }
        try await poll { await refusal(of: 1, calls) == nil }
    }

    @Test func `a new timeout applies to the next call`() async throws {
        let calls = makeCalls()
        calls.timeout = .seconds(60)
        let call = hang(calls, for: 1)
        try await clock.sleeps.wait { $0 == [.seconds(60)] }
        clock.advance(by: .seconds(60))
        await #expect(throws: TimedCall.Timeout.self) { try await call.value }
        latch.open()
    }

    @Test func `a key whose call has returned is proven, even if it was idle`() async throws {
        let calls = makeCalls()
        try await calls.run(for: 1) {}
        let parallel = (0..<3).map { _ in hang(calls, for: 1) }
        try await started.wait { $0.count == parallel.count }
        latch.open()
        for call in parallel { try await call.value }
    }

    @Test func `a call that never returns does not block its key, but four of them do`() async throws {
        let calls = makeCalls()
        for count in 1...KeyedCalls<Int>.maximumOverduePerKey {
            #expect(try await calls.run(for: 1) { "returned" } == "returned")
            hang(calls, for: 1)
            try await started.wait { $0.count == count }
            clock.advance(by: .seconds(600))
        }
        #expect(await refusal(of: 1, calls) == .overdue)
        latch.open()
        try await poll { await refusal(of: 1, calls) == nil }
    }

    @Test func `a call whose caller was cancelled is overdue only after the timeout`() async throws {
        let calls = makeCalls()
        let caller = hang(calls, for: 1)
        try await started.wait { $0.count == 1 }
        caller.cancel()
        _ = await caller.result
        // The timeout of the call, and the time at which it becomes overdue.
        try await clock.sleeps.wait { $0 == [.seconds(600), .seconds(600)] }
        clock.advance(by: .seconds(1))
        let next = Task { try await calls.run(for: 1) { "returned" } }
        try await poll { calls.count(of: 1).waiting == 1 }
        clock.advance(by: .seconds(599))
        #expect(try await next.value == "returned")
        latch.open()
    }

    @Test func `calls that wait when their time ends are released, even if the call before them returns`()
        async throws
    {
        let released = Recorder<Bool>()
        for round in 1...50 {
            let (calls, end) = (makeCalls(), Latch())
            let first = Task { [started] in
                try await calls.run(for: 1) {
                    started.record(round)
                    await end.wait()
                }
            }
            try await started.wait { $0.last == round }
            let others = (0..<4).map { _ in
                let captured = Captured { released.record(true) }
                return Task { try await calls.run(for: 1) { withExtendedLifetime(captured) {} } }
            }
            try await poll { calls.count(of: 1).waiting == others.count }
            clock.advance(by: .seconds(600))
            end.open()
            for task in [first] + others { _ = await task.result }
        }
        try await released.wait { $0.count == 200 }
    }

    @Test func `a waiting call begins as soon as the call before it is overdue`() async throws {
        let calls = makeCalls()
        let first = hang(calls, for: 1)
        try await started.wait { $0.count == 1 }
        clock.advance(by: .seconds(1))
        let next = Task { try await calls.run(for: 1) { "returned" } }
        try await poll { calls.count(of: 1).waiting == 1 }
        clock.advance(by: .seconds(599))
        #expect(try await next.value == "returned")
        await #expect(throws: TimedCall.Timeout.self) { try await first.value }
        latch.open()
    }

    @Test func `calls that wait are refused when too many calls for their key are overdue`() async throws {
        let (calls, limit) = (makeCalls(), KeyedCalls<Int>.maximumOverduePerKey)
        hang(calls, for: 1)
        try await started.wait { $0.count == 1 }
        for waiting in 1..<limit {
            clock.advance(by: .seconds(1))
            hang(calls, for: 1)
            try await poll { calls.count(of: 1).waiting == waiting }
        }
        clock.advance(by: .seconds(1))
        let last = Task { await refusal(of: 1, calls) }
        try await poll { calls.count(of: 1).waiting == limit }
        clock.advance(by: .seconds(600 - limit))
        for count in 2...limit {
            try await started.wait { $0.count == count }
            clock.advance(by: .seconds(1))
        }
        #expect(await last.value == .overdue)
        latch.open()
    }

    @Test func `one call for a key runs until it has returned, and a caller that stops waiting begins none`()
        async throws
    {
        let calls = makeCalls()
        let first = hang(calls, for: 1)
        try await started.wait { $0.count == 1 }
        let others = (0..<3).map { _ in hang(calls, for: 1) }
        try await poll { calls.count(of: 1).waiting == others.count }
        for other in others {
            other.cancel()
            await #expect(throws: CancellationError.self) { try await other.value }
        }
        latch.open()
        try await first.value
        try await calls.run(for: 1) {}
        #expect(started.values == [1])
    }

    @Test func `a call that returns too late does not prove its key`() async throws {
        let calls = makeCalls()
        let late = Latch()
        let first = Task { [started] in
            try await calls.run(for: 1) {
                started.record(1)
                await late.wait()
            }
        }
        try await started.wait { $0.count == 1 }
        clock.advance(by: .seconds(600))
        let others = (0..<2).map { _ in hang(calls, for: 1) }
        try await started.wait { $0.count == 2 }
        try await poll { calls.count(of: 1).waiting == 1 }
        late.open()
        await #expect(throws: TimedCall.Timeout.self) { try await first.value }
        try await poll { calls.count(of: 1).inProgress == 1 }
        #expect(calls.count(of: 1).waiting == 1, "the key has not proven that its calls return")
        latch.open()
        for other in others { try await other.value }
    }

    @Test func `the calls for a proven key run in parallel, up to the number of places`() async throws {
        let calls = makeCalls()
        let first = Latch()
        let caller = Task { [started] in
            try await calls.run(for: 1) {
                started.record(1)
                await first.wait()
            }
        }
        try await started.wait { $0.count == 1 }
        let others = (0..<40).map { _ in hang(calls, for: 1) }
        try await poll { calls.count(of: 1).waiting == others.count }
        first.open()
        try await caller.value
        let most = 1 + 1 + KeyedCalls<Int>.maximumParallel
        try await started.wait { $0.count == most }
        try await Task.sleep(for: .milliseconds(50))
        #expect(started.values.count == most)
        #expect(try await calls.run(for: 2) { "returned" } == "returned", "the first call needs no place")
        latch.open()
        for other in others { try await other.value }
        #expect(started.values.count == 41)
    }
}
