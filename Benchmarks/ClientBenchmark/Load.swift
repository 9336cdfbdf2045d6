internal import BenchmarkSupport
internal import NetwatchEventLoop

/// Keeps a constant number of requests in flight until a deadline.
final class Load: Sendable {
    private struct State {
        /// The number of requests in flight.
        var running: Int
        /// The number of requests that succeeded.
        var answered = 0
        var failed = 0
        let continuation: CheckedContinuation<(answered: Int, failed: Int), Never>

        /// Counts a request that has ended. Resumes the continuation if it was the last one.
        ///
        /// - Parameter isFollowed: Whether another request starts in its place.
        mutating func end(_ isAnswered: Bool, isFollowed: Bool) {
            if isAnswered { answered += 1 } else { failed += 1 }
            if !isFollowed { running -= 1 }
            if running == 0 { continuation.resume(returning: (answered, failed)) }
        }
    }

    private let client: any Client
    private let url: String
    /// The time after which no more requests are started, as returned by `now()`.
    private let deadline: Int64
    private let state: Lock<State>

    /// Requests a URL, with `count` requests in flight, until the deadline. If the deadline has already passed, makes
    /// exactly `count` requests.
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
        self.state = Lock(state)
    }

    private func next() {
        client.get(url) { isAnswered in
            let isFollowed = now() < self.deadline
            self.state.withLock { $0.end(isAnswered, isFollowed: isFollowed) }
            if isFollowed { self.next() }
        }
    }
}
