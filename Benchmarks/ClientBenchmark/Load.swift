internal import BenchmarkSupport
internal import Synchronization

/// Keeps a constant number of requests running.
final class Load: Sendable {
    private struct State {
        var running: Int
        var answered = 0
        var failed = 0
        let continuation: CheckedContinuation<(answered: Int, failed: Int), Never>

        /// Counts a request that has ended. The last one ends the load.
        mutating func end(_ isAnswered: Bool, isFollowed: Bool) {
            if isAnswered { answered += 1 } else { failed += 1 }
            if !isFollowed { running -= 1 }
            if running == 0 { continuation.resume(returning: (answered, failed)) }
        }
    }

    private let client: any Client
    private let url: String
    /// The time of `now()` after which no more requests are started.
    private let deadline: Int64
    private let state: Mutex<State>

    /// Requests a URL with `count` requests at a time until the deadline. If the deadline has passed, makes exactly
    /// `count` requests.
    ///
    /// - Returns: The number of successful and of failed requests.
    static func run(
        _ client: any Client,
        _ url: String,
        count: Int,
        until deadline: Int64
    ) async -> (answered: Int, failed: Int) {
        await withCheckedContinuation { continuation in
            let state = State(running: count, continuation: continuation)
            let load = Load(client, url, deadline, state)
            for _ in 0..<count { load.next() }
        }
    }

    private init(_ client: any Client, _ url: String, _ deadline: Int64, _ state: sending State) {
        self.client = client
        self.url = url
        self.deadline = deadline
        self.state = Mutex(state)
    }

    private func next() {
        client.get(url) { isAnswered in
            let isFollowed = now() < self.deadline
            self.state.withLock { $0.end(isAnswered, isFollowed: isFollowed) }
            if isFollowed { self.next() }
        }
    }
}
