internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Requests that are held for `auth`, and that are tried again although their credential has not changed.
@Suite(.timeLimit(.minutes(5))) struct RejectedCredentialTests {
    private let directory = TemporaryDirectory(marker: "rejected")
    private let changes = ChangeSignal()

    /// A sender to a server that rejects every request while the token is `closed`, and requests without a credential
    /// in any case.
    private func sender(_ server: TestToken) -> FakeSender {
        FakeSender { attempt in
            let hasCredential = attempt.value(of: "Authorization") != nil
            return .status(hasCredential && server.value == "open" ? 200 : 401)
        }
    }

    private func register(in queue: OfflineQueue) async throws {
        let origins = ["https://example.com", "https://other.example"]
        try await queue.register(try QueueCredential(.bearer("token"), origins: origins), as: "token")
    }

    @Test func `a success with the same credential releases the others of its origin at once`() async throws {
        let server = TestToken("closed")
        let queue = try await directory.openQueue(sender(server), signal: changes)
        try await register(in: queue)
        try await queue.enqueue(id: "a", credential: "token") { $0.isFIFO = true }
        try await queue.enqueue(id: "b", credential: "token") { $0.isFIFO = true }
        try await queue.enqueue(id: "c", credential: "token") { $0.lane = "l" }
        try await queue.enqueue(id: "other", host: "other.example", credential: "token")
        try await queue.enqueue(id: "none")
        try await changes.until(queue) { $0[.held] == 4 }
        let held = try #require(try await queue.request("a")).summary
        #expect(held.holdReason == .auth && held.credential == "token")
        let next = try #require(held.nextTry).timeIntervalSinceNow
        #expect(next > 0 && next <= 330)
        server.set("open")
        try await queue.enqueue(id: "new", credential: "token")
        try await changes.until(queue) { $0[.delivered] == 4 }
        let states = try await queue.list().requests.filter { $0.state == .held }.map(\.id)
        #expect(states == ["other", "none"], "another origin, and no credential")
        await queue.stop()
    }

    @Test func `an adapter with a new token is tried again, in the order of the lane`() async throws {
        let server = TestToken("closed")
        let sender = FakeSender { _ in .status(server.value == "open" ? 200 : 401) }
        let queue = try await directory.openQueue(sender, signal: changes) {
            $0.authRetries = Backoff(base: .milliseconds(20), cap: .milliseconds(40))
        }
        try await queue.enqueue(id: "a") {
            ($0.isFIFO, $0.isAtMostOnce, $0.maximumAttempts) = (true, true, 1)
        }
        try await queue.enqueue(id: "b") { $0.isFIFO = true }
        for _ in 0..<3 { #expect(await sender.nextAttempt().id == "a") }
        server.set("open")
        try await changes.until(queue) { $0[.delivered] == 2 }
        let ids = sender.attempts.map(\.id)
        #expect(ids.last == "b" && ids.dropLast().allSatisfy { $0 == "a" })
        let first = try #require(try await queue.request("a")).summary
        #expect(first.attempts == 1 && first.deferrals >= 2, "a rejected attempt does not count")
        await queue.stop()
    }

    @Test func `a server that fails twice for a moment delays no lane after the first delivery`() async throws
    {
        let server = TestToken("open")
        let queue = try await directory.openQueue(sender(server), signal: changes)
        try await register(in: queue)
        for failure in 1...3 {
            server.set("closed")
            try await queue.enqueue(id: "a\(failure)", credential: "token") { $0.isFIFO = true }
            try await changes.until(queue) { $0[.held] == 1 }
            server.set("open")
            try await queue.enqueue(id: "b\(failure)", credential: "token") { $0.lane = "l" }
            try await changes.until(queue) { $0[.delivered] == 2 * failure }
        }
        await queue.stop()
    }

    @Test func `a server that rejects some requests for good is not asked at each success`() async throws {
        let sender = FakeSender { attempt in .status(attempt.url.hasSuffix("/locked") ? 401 : 200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await register(in: queue)
        try await queue.enqueue(id: "locked", credential: "token")
        try await changes.until(queue) { $0[.held] == 1 }
        func locked() -> Int { sender.attempts.count { $0.id == "locked" } }
        try await queue.enqueue(id: "0", credential: "token")
        try await changes.until { try await queue.request("locked")?.summary.deferrals == 2 }
        for number in 1..<10 {
            try await queue.enqueue(id: "\(number)", credential: "token")
            try await changes.until(queue) { $0[.delivered] == number + 1 }
        }
        #expect(try await queue.request("locked")?.summary.state == .held && locked() == 2)
        await queue.stop()
    }
}
