internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// Paths that are lost while the built service has requests in flight. An attempt that fails while offline does not
/// count.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .serialized,
    .timeLimit(.minutes(30))
)
struct ReconnectTests {
    private static let rounds = CheckSize.choose(small: 1, medium: 2, full: 34)

    @Test func `however the network is cut, no offline attempt is counted, and all requests arrive`()
        async throws
    {
        let run = try await ReconnectRun()
        try await run.keepWatching()
        for kind in NetworkCuts.Kind.allCases {
            for round in 0..<Self.rounds {
                // In a long round the cut outlasts the grace period of 3 s.
                try await run.round(kind, isLong: round % 4 == (kind.isOfLink ? 0 : 1))
            }
        }
        if CheckSize.current == .full { print(run.summary) }
    }

    @Test(arguments: [false, true])
    func `an attempt in flight when the carrier is lost is not counted`(
        returns: Bool
    ) async throws {
        let run = try await ReconnectRun()
        let id = try await run.enqueue("/held")
        await run.server.requests(atLeast: 1)
        try run.cuts.cut(.cable)
        let lost = try await run.service.request(id) { $0["state"] as? String != "inflight" }
        #expect(lost["state"] as? String == "pending", "\(lost)")
        #expect(lost["attempts"] as? Int == 0 && lost["deferrals"] as? Int == 1, "\(lost)")
        let error = lost["last_error"] as? String
        #expect(error == "the path to \(TwoCableTestbed.host) was lost", "\(lost)")
        guard returns else { return }
        try run.cuts.restore(.cable)
        await run.server.requests(atLeast: 2)
        run.release()
        let over = try await run.end(of: id)
        #expect(over["state"] as? String == "delivered" && over["attempts"] as? Int == 1, "\(over)")
    }

    @Test func `an at-most-once request is held when its path is lost`() async throws {
        let run = try await ReconnectRun()
        let id = try await run.enqueue("/held", #","at_most_once":true"#)
        await run.server.requests(atLeast: 1)
        try run.cuts.cut(.cable)
        let lost = try await run.service.request(id) { $0["state"] as? String != "inflight" }
        #expect(lost["hold_reason"] as? String == "ambiguous", "\(lost)")
        #expect(run.server.requests.count == 1)
    }

    /// For 30 ms (the default settle time) the kernel already refuses connections, but the monitor has not yet
    /// published the loss.
    @Test(arguments: [NetworkCuts.Kind.blackhole, .prohibit, .route])
    func `requests sent while the route flaps are all delivered`(kind: NetworkCuts.Kind)
        async throws
    {
        let run = try await ReconnectRun()
        // As many as fit on one page of a list.
        let count = 100
        let sending = Task { try await run.flood(count) }
        // The path is lost and restored every 20 ms until all requests are accepted.
        while !run.isFlooded {
            try run.cuts.cut(kind)
            try await Task.sleep(for: .milliseconds(20))
            try run.cuts.restore(kind)
            try await Task.sleep(for: .milliseconds(20))
        }
        try await sending.value
        let states = try await run.service.finalStates()
        #expect(states == Array(repeating: "delivered", count: count), "\(states)")
    }
}

/// A service on a host with two links, and the server that it sends to.
final class ReconnectRun: Sendable {
    private struct State {
        var arrivals: [String: [ContinuousClock.Instant]] = [:]
        var latencies: [String: [Duration]] = [:]
        /// The group for which the responses to `/held…` wait; `nil` if the server responds immediately.
        var held: DispatchGroup?
        var isFlooded = false
        var count = 0
    }

    let cuts: NetworkCuts
    let service: RunningService
    let server: ScriptedServer
    private let state: Log

    /// The state that the server's threads and the test share.
    private final class Log: Sendable {
        let state = Lock(State())
        let arrived = Recorder<String>()

        func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
            let held = state.withLock { state in
                state.arrivals[request.target, default: []].append(.now)
                return request.target.hasPrefix("/held") ? state.held : nil
            }
            arrived.record(request.target)
            held?.wait()
            return .respond("")
        }

        func hold() {
            state.withLock { state in
                state.held = DispatchGroup()
                state.held!.enter()
            }
        }

        func release() {
            state.withLock { state in
                state.held?.leave()
                state.held = nil
            }
        }
    }

    init() async throws {
        let log = Log()
        state = log
        cuts = try NetworkCuts()
        server = try ScriptedServer(address: TwoCableTestbed.host, in: cuts.far) { log.answer($0) }
        service = try await RunningService(in: try ScratchDirectory(), namespace: cuts.near)
        log.hold()
    }

    deinit { release() }

    /// Lets the server send the responses that it holds back. It holds back no more until the next round.
    func release() { state.release() }

    /// Enqueues a request with `max_attempts` 1.
    ///
    /// - Parameter more: Additional members of the request's message, each preceded by a comma.
    func enqueue(_ target: String, scheme: String = "http", _ more: String = "") async throws -> String {
        let url = "\(scheme)://\(TwoCableTestbed.host):\(server.port)\(target)"
        let message = #"{"url":"\#(url)","method":"POST","body":"x","queue":"always","max_attempts":1"#
        let answer = try await service.curl(
            "/v1/requests -H Content-Type:application/json -d '\(message)\(more)}'"
        )
        return try #require(try Command.json(answer)["id"] as? String, "\(answer)")
    }

    /// Enqueues a request for tomorrow, so that the service watches the path to the server between the rounds, too. It
    /// would otherwise miss a change of the path that precedes the first status of a new watch.
    func keepWatching() async throws {
        let tomorrow = Date(timeIntervalSinceNow: 86_400).formatted(.iso8601)
        _ = try await enqueue("/tomorrow", #","lane":"watched","not_before":"\#(tomorrow)""#)
    }

    func end(of id: String) async throws -> [String: Any] {
        try await service.end(of: id)
    }

    var isFlooded: Bool { state.state.withLock(\.isFlooded) }

    /// Enqueues `count` requests one after another.
    func flood(_ count: Int) async throws {
        defer { state.state.withLock { $0.isFlooded = true } }
        for number in 0..<count { _ = try await enqueue("/\(number)") }
    }
}

// MARK: - Rounds

extension ReconnectRun {
    /// Cuts the path while one request is in flight, and restores it when another request is waiting. Measures the time
    /// from the restoration until the second request arrives at the server.
    func round(_ kind: NetworkCuts.Kind, isLong: Bool) async throws {
        let number = state.state.withLock { state in
            state.count += 1
            return state.count
        }
        state.release()
        state.hold()
        let (held, next) = ("/held-\(number)", "/next-\(number)")
        let first = try await enqueue(held)
        try await wait(for: held)
        try cuts.cut(kind)
        let cut = ContinuousClock.now
        if kind == .roaming { try await wait(for: held, times: 2) }
        let second = try await enqueue(next, #","lane":"\#(number)""#)
        if isLong, kind != .roaming {
            try await service.request(first) { $0["state"] as? String == "pending" }
        }
        let restored = ContinuousClock.now
        try cuts.restore(kind)
        try await wait(for: next)
        let arrival = state.state.withLock { $0.arrivals[next]![0] }
        if kind != .roaming, arrival > restored {
            state.state.withLock { $0.latencies[kind.rawValue, default: []].append(arrival - restored) }
        }
        if isLong, kind != .roaming { try await wait(for: held, times: 2) }
        release()
        for id in [first, second] {
            let over = try await end(of: id)
            #expect(
                over["state"] as? String == "delivered" && over["attempts"] as? Int == 1,
                "\(kind) \(over)"
            )
        }
        let times = state.state.withLock { $0.arrivals[held]!.count }
        // The service has noticed the restoration when it sends the second request, which may be late.
        let wasShort = max(restored, arrival) - cut < .milliseconds(2500)
        if kind != .roaming, wasShort { #expect(times == 1, "a short \(kind) cut an attempt") }
    }

    private func wait(for target: String, times: Int = 1) async throws {
        try await state.arrived.wait { $0.count { $0 == target } >= times }
    }

    /// A human-readable summary of the measured times.
    var summary: String {
        let latencies = state.state.withLock(\.latencies)
        let lines = latencies.sorted { $0.key < $1.key }.map { kind, times in words(kind, times) }
        return (lines + [words("all", latencies.values.flatMap(\.self))]).joined(separator: "\n")
    }

    private func words(_ name: String, _ times: [Duration]) -> String {
        let sorted = times.sorted()
        func quantile(_ share: Double) -> String {
            let milliseconds = sorted[Int(Double(sorted.count - 1) * share)] / .milliseconds(1)
            return "\((milliseconds * 10).rounded() / 10) ms"
        }
        return
            "reconnect \(name): \(sorted.count) rounds, p50 \(quantile(0.5)), p99 \(quantile(0.99)), max \(quantile(1))"
    }
}
