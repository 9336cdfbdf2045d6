internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Requests in networks that respond in place of their server.
@Suite(.serialized, .timeLimit(.minutes(30))) struct HostileNetworkTests {
    private static let rows = CheckSize.choose(small: 500, medium: 500, full: 10_000)
    private static let recognized = Expected(rules: [.header("X-Server", value: "real")])

    private let directory = TemporaryDirectory(marker: "hostile")
    private let changes = ChangeSignal()

    private func open(
        _ session: SessionManager = .bare(),
        portals: (any PortalDetector)? = nil
    ) async throws -> OfflineQueue {
        try await directory.openQueue(SessionSender(session: session), portals: portals, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(5), .milliseconds(50))
            ($0.inflightPerOrigin, $0.limits.laneShare) = (32, 1)
        }
    }

    private struct Row {
        let behaviour: HostileNetwork.Behaviour
        let isAtMostOnce: Bool
        let target: String

        init(_ index: Int) {
            let behaviours = HostileNetwork.Behaviour.allCases
            behaviour = behaviours[index % behaviours.count]
            isAtMostOnce = index / behaviours.count % 4 == 3
            target = "/\(behaviour.rawValue)/\(index)"
        }

        /// Whether the request is held, because the server may have applied it.
        var isHeld: Bool { isAtMostOnce && !behaviour.isUnapplied }

        /// A lane for each request, so that each one is tried although others fail.
        func options(_ expectation: Expected) -> EnqueueOptions {
            var options = EnqueueOptions(lane: target, id: target)
            options.expectation = expectation
            options.isAtMostOnce = isAtMostOnce
            // With a single counted attempt, the request would be given up.
            if behaviour.isResponse { options.maximumAttempts = 1 }
            return options
        }
    }

    private func enqueue(
        _ rows: [Row],
        at url: String,
        expecting expectation: Expected,
        in queue: OfflineQueue
    )
        async throws
    {
        let requests = rows.map { row in
            let body = QueueRequest.Body.data(Data("b".utf8))
            return QueueRequest(method: "POST", url: url + row.target, body: body)
        }
        for (row, request) in zip(rows, requests) {
            _ = try await queue.enqueue(request, options: row.options(expectation))
        }
    }

    @Test func `no portal or other server on plain HTTP delivers or ends a request with a rule`() async throws
    {
        let network = try HostileNetwork()
        let queue = try await open(network.session())
        let rows = (0..<Self.rows).map(Row.init)
        try await enqueue(rows, at: network.url, expecting: Self.recognized, in: queue)
        try await network.intercepted(rows.count)
        var counts = try await queue.counts
        #expect(counts[.delivered] == 0 && counts[.dead] == 0)
        network.letThrough()
        let held = Set(rows.filter(\.isHeld).map(\.target))
        try await changes.until(queue) { $0[.delivered] == rows.count - held.count }
        counts = try await queue.counts
        #expect(counts[.held] == held.count && counts[.dead] == 0)
        #expect(
            held.isDisjoint(with: network.arrived),
            "a request that may have been applied is not repeated"
        )
        #expect(network.arrived.count == rows.count - held.count)
        if CheckSize.current == .full {
            print("portals: \(rows.count) requests, 0 delivered or dead, \(held.count) held as ambiguous")
        }
        await queue.stop()
    }

    @Test func `the check notices portals that deliver and end requests without a rule`() async throws {
        let network = try HostileNetwork()
        let queue = try await open(network.session())
        let rows = (0..<36).map(Row.init)
        try await enqueue(rows, at: network.url, expecting: .success, in: queue)
        try await network.intercepted(rows.count)
        try await changes.until(queue) { $0[.delivered] > 0 && $0[.dead] > 0 }
        await queue.stop()
    }

    @Test func `no portal that a probe detects receives a request without a rule`() async throws {
        let network = try HostileNetwork()
        let probe = try CaptivePortalProbe.generate204(network.probeURL)
        let queue = try await open(network.session(), portals: PathPortalDetector(probe) { _ in nil })
        let rows = (0..<Self.rows).map(Row.init)
        try await enqueue(rows, at: network.url, expecting: .success, in: queue)
        try await network.interceptedProbes(2)
        let counts = try await queue.counts
        #expect(counts[.delivered] == 0 && counts[.dead] == 0 && counts[.held] == 0)
        #expect(network.interceptedCount == 0)
        network.letThrough()
        try await changes.until(queue) { $0[.delivered] == rows.count }
        #expect(network.arrived.count == rows.count)
        await queue.stop()
    }

    // MARK: Retry-After

    private static let dates: [(name: String, value: @Sendable () -> String)] = [
        ("a date in an hour", { httpDate(in: 3600) }), ("a past date", { httpDate(in: -3600) }),
        ("ten years", { "315360000" }), ("a date in ten years", { httpDate(in: 315_360_000) }),
        ("a negative number", { "-5" }),
    ]

    private static func httpDate(in seconds: TimeInterval) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSinceNow: seconds))
    }

    @Test(arguments: dates.indices)
    func `a 429 with any Retry-After only delays requests, at most for a day`(index: Int) async throws {
        let value = Self.dates[index].value()
        let isShort = ["a past date", "a negative number"].contains(Self.dates[index].name)
        let limited = ArrivalCounts()
        let server = try ScriptedServer { request in
            let lane = request.values(of: "X-Lane").first ?? ""
            let headers = [ScriptedServer.Header("X-Server", "real"), .init("Retry-After", value)]
            return .respond(status: limited.next(lane) == 1 ? 429 : 201, headers: headers)
        }
        let queue = try await open()
        let (lanes, rows) = (10, Self.rows / 10)
        for row in 0..<rows {
            var options = EnqueueOptions(lane: "\(row % lanes)", isFIFO: true, id: "\(row)")
            options.expectation = Self.recognized
            let headers = [QueueRequest.Header(name: "X-Lane", value: "\(row % lanes)")]
            let request = QueueRequest(
                method: "POST",
                url: "\(server.url)/",
                headers: headers,
                body: .data(Data())
            )
            _ = try await queue.enqueue(request, options: options)
        }
        if !isShort {
            try await changes.until { try await queue.statistics().closedLanes.count == lanes }
            let statistics = try await queue.statistics()
            let latest = Date(timeIntervalSinceNow: 24 * 3600 + 30)
            #expect(statistics.closedLanes.allSatisfy { $0.closure.until <= latest })
            #expect(statistics.counts[.pending] == rows)
            try await queue.flush()
        }
        try await changes.until(queue) { $0[.delivered] == rows }
        #expect(try await queue.counts[.dead] == 0)
        #expect(server.requests.count == rows + lanes)
        await queue.stop()
    }

    // MARK: TLS

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a portal's certificate and another server's certificate only hold requests`() async throws {
        let server = try await ImpersonatedServer()
        let queue = try await open(try server.session())
        let rows = (0..<Self.rows / 5).map(Row.init)
        for impostor in [ImpersonatedServer.Identity.selfSigned, .anotherServer] {
            try server.present(impostor)
            if impostor == .selfSigned {
                try await enqueue(rows, at: server.url, expecting: .success, in: queue)
            } else {
                try await queue.flush()
            }
            try await changes.until(queue) { $0[.held] == rows.count }
            let reasons = try await queue.list(RequestQuery(limit: rows.count)).requests.map(\.holdReason)
            #expect(reasons.allSatisfy { $0 == .trust })
        }
        try server.present(.itself)
        try await queue.flush()
        try await changes.until(queue) { $0[.delivered] == rows.count }
        await queue.stop()
    }
}

/// Counts the arrivals of each key.
final class ArrivalCounts: Sendable {
    private let counts = Lock<[String: Int]>([:])

    var all: [String: Int] { counts.withLock { $0 } }

    /// Counts an arrival, and returns its number. The first one has 1.
    func next(_ key: String) -> Int {
        counts.withLock { counts in
            counts[key, default: 0] += 1
            return counts[key]!
        }
    }
}
