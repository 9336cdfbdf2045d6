internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Requests that wait in memory for a path to their host.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct OfflineRetrierTests {
    /// Records the delays before retries.
    private struct Delays: EventMonitor {
        let delays = Recorder<Double>()

        func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
            delays.record(delay)
        }
    }

    private struct Counts: Equatable {
        var waiters: Int
        var unreachable: Int
    }

    private func waiting(_ retrier: ConnectivityRetrier) -> Counts {
        let count = retrier.waits.count
        return Counts(waiters: count.waiters, unreachable: count.unreachable)
    }

    private func wait(for retrier: ConnectivityRetrier, _ waiters: Int, _ unreachable: Int) async throws {
        let expected = Counts(waiters: waiters, unreachable: unreachable)
        try await retrier.waits.changes.until { waiting(retrier) == expected }
    }

    @Test func `a request waits for the path to its host and is sent again`() async throws {
        let testbed = try OfflineTestbed()
        let server = try testbed.server()
        let retrier = OfflineRetrier(maximumWait: nil)
        testbed.session.interceptor = retrier
        let request = testbed.session.request(server.url)
        async let answer = request.responseString().value
        try await wait(for: retrier.connectivity, 1, 1)
        try testbed.connect()
        #expect(await answer == "ok")
        #expect(request.retryCount == 1)
        #expect(waiting(retrier.connectivity) == Counts(waiters: 0, unreachable: 0))
    }

    @Test func `a request that was sent before the path was lost is sent again only if it may arrive twice`()
        async throws
    {
        let testbed = try OfflineTestbed(isConnected: true)
        let server = try testbed.server { $0.number <= 2 ? .stall(then: .close) : .respond("ok") }
        defer { server.release() }
        let retrier = OfflineRetrier(maximumWait: nil)
        testbed.session.interceptor = retrier
        async let put = testbed.session.request(server.url, method: .put).responseString().value
        async let post = testbed.session.request(server.url, method: .post).responseString().error
        await server.requests(atLeast: 2)
        try await testbed.watchesPath()
        try testbed.disconnect()
        #expect((await post as? URLError)?.code == .notConnectedToInternet)
        try await wait(for: retrier.connectivity, 1, 1)
        try testbed.connect()
        #expect(await put == "ok")
        let posts = server.requests.count { $0.method == "POST" }
        #expect(posts == 1)
    }

    @Test(arguments: [true, false])
    func `a POST that was redirected before the path was lost is not sent again`(isSent: Bool) async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        // In the second case the path is lost before the target of the redirect is connected.
        let target = isSent ? "/result" : "http://203.0.113.77:1/"
        let server = try testbed.server { request in
            guard request.method == "POST" else { return .stall(then: .close) }
            if !isSent { #expect(throws: Never.self) { try testbed.disconnect() } }
            return .respond(status: 303, headers: [.init("Location", target)])
        }
        defer { server.release() }
        let retrier = OfflineRetrier(maximumWait: nil)
        testbed.session.interceptor = retrier
        async let error = testbed.session.request(server.url, method: .post).response().error
        if isSent {
            await server.requests(atLeast: 2)
            try await testbed.watchesPath()
            try testbed.disconnect()
        }
        #expect((await error as? URLError)?.code == .notConnectedToInternet)
        #expect(server.requests.map(\.method) == (isSent ? ["POST", "GET"] : ["POST"]))
    }

    @Test func `requests to the same host share a watch, and other hosts have separate watches`() async throws
    {
        let testbed = try OfflineTestbed()
        let server = try testbed.server()
        let retrier = OfflineRetrier(maximumWait: nil)
        testbed.session.interceptor = retrier
        let delays = Delays()
        testbed.session.eventMonitors = [delays]
        let requests = (0..<10).map { _ in testbed.session.request(server.url) }
        let other = testbed.session.request("http://203.0.113.77:1/")
        try await wait(for: retrier.connectivity, 11, 2)
        // Adds a route to the first host only.
        try testbed.testbed.near.ip("route add \(OfflineTestbed.host) via \(VethTestbed.farAddress)")
        for request in requests { #expect(await request.responseString().value == "ok") }
        #expect(waiting(retrier.connectivity) == Counts(waiters: 1, unreachable: 1))
        #expect(delays.delays.values.count { $0 == 0 } == RetryPacing().atOnce)
        #expect(delays.delays.values.count == 10)
        other.cancel()
        try await wait(for: retrier.connectivity, 0, 0)
    }

    @Test func `after the maximum wait the request fails`() async throws {
        let testbed = try OfflineTestbed()
        let retrier = OfflineRetrier(maximumWait: .milliseconds(20))
        testbed.session.interceptor = retrier
        let response = await testbed.session.request("http://\(OfflineTestbed.host):1/").response()
        #expect((response.error as? URLError)?.code == .notConnectedToInternet)
        #expect(waiting(retrier.connectivity) == Counts(waiters: 0, unreachable: 0))
    }

    @Test func `a timeout that expires immediately ends the wait`() async throws {
        let testbed = try OfflineTestbed()
        let host = try #require(NetworkHost(OfflineTestbed.host))
        let atOnce: PathWaits.Timer = { _, body in
            body()
            return Task {}
        }
        let waits = PathWaits(RetryPacing(), timer: atOnce) { $0.isReachable }
        #expect(await waits.wait(for: host, testbed.monitor, atMost: .seconds(1)) == .ended)
        #expect(waits.count == (0, 0))
        // Even the shortest wait must end, in whatever order the threads run.
        let quick = PathWaits(RetryPacing()) { $0.isReachable }
        let outcomes = await withTaskGroup { group in
            for _ in 0..<500 {
                group.addTask { await quick.wait(for: host, testbed.monitor, atMost: .nanoseconds(1)) }
            }
            return await group.reduce(into: Set<PathWaits.Outcome>()) { $0.insert($1) }
        }
        #expect(outcomes == [.ended])
        #expect(quick.count == (0, 0))
    }

    @Test func `waiters for the same path have separate timeouts`() async throws {
        let testbed = try OfflineTestbed()
        let host = try #require(NetworkHost(OfflineTestbed.host))
        let waits = PathWaits(RetryPacing()) { $0.isReachable }
        async let patient = waits.wait(for: host, testbed.monitor, atMost: nil)
        try await waits.changes.until { waits.count == (1, 1) }
        #expect(await waits.wait(for: host, testbed.monitor, atMost: .milliseconds(5)) == .ended)
        #expect(waits.count == (1, 1))
        try testbed.connect()
        #expect(await patient == .reachable(after: .zero))
    }

    @Test func `cancelling one waiter does not affect the others`() async throws {
        let testbed = try OfflineTestbed()
        let server = try testbed.server()
        let retrier = OfflineRetrier(maximumWait: nil)
        testbed.session.interceptor = retrier
        let (first, second) = (testbed.session.request(server.url), testbed.session.request(server.url))
        try await wait(for: retrier.connectivity, 2, 1)
        first.cancel()
        #expect((await first.response().error as? URLError)?.code == .cancelled)
        try await wait(for: retrier.connectivity, 1, 1)
        try testbed.connect()
        #expect(await second.responseString().value == "ok")
    }

    @Test(arguments: [true, false]) func `releasing the session ends the wait`(isInterceptor: Bool)
        async throws
    {
        let testbed = try OfflineTestbed()
        var session: SessionManager? = SessionManager(engine: testbed.engine, monitor: testbed.monitor)
        if isInterceptor {
            session?.interceptor = OfflineRetrier(maximumWait: nil)
        } else {
            session?.waitsForConnectivity = true
        }
        let request = try #require(session).request("http://\(OfflineTestbed.host):1/")
        let hooks = try #require(session?.context.hooks)
        let retrier = try #require(
            hooks.connectivityRetrier ?? (hooks.interceptor as? OfflineRetrier)?.connectivity
        )
        try await wait(for: retrier, 1, 1)
        session = nil
        #expect((await request.response().error as? AFError)?.isSessionDeinitializedError == true)
        try await wait(for: retrier, 0, 0)
    }

    @Test func `if there is a path, the delays grow and the retries are limited`() async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        let server = try testbed.server { _ in .respond(status: 503) }
        let pacing = RetryPacing(firstDelay: .milliseconds(4))
        testbed.session.interceptor = OfflineRetrier(maximumRetries: 3, pacing: pacing) { _ in true }
        let delays = Delays()
        testbed.session.eventMonitors = [delays]
        let response = await testbed.session.request(server.url).validate().response()
        #expect((response.error as? AFError)?.responseCode == 503)
        #expect(server.requests.count == 4)
        for (delay, most) in zip(delays.delays.values, [0.004, 0.008, 0.016]) {
            #expect(delay > most * 0.74 && delay <= most)
        }
        #expect(delays.delays.values.count == 3)
    }

    @Test(arguments: [(InterfaceType.wifi, false), (.veth, true)])
    func `the path must use the required interface type`(type: InterfaceType, isEnough: Bool) async throws {
        let requiring = OfflineRetrier(maximumWait: nil, requiredInterfaceType: type)
        try await expectRetry(isEnough, by: requiring)
        let prohibiting = OfflineRetrier(maximumWait: nil, prohibitedInterfaceTypes: [type])
        try await expectRetry(!isEnough, by: prohibiting)
    }

    /// Checks whether a request that waits is sent again when there is a path over a cable between namespaces.
    private func expectRetry(_ isExpected: Bool, by retrier: OfflineRetrier) async throws {
        let testbed = try OfflineTestbed()
        let server = try testbed.server()
        testbed.session.interceptor = retrier
        let request = testbed.session.request(server.url)
        try await wait(for: retrier.connectivity, 1, 1)
        guard !isExpected else {
            try testbed.connect()
            #expect(await request.responseString().value == "ok")
            return
        }
        let host = try #require(NetworkHost(OfflineTestbed.host))
        let statuses = Recorder<PathStatus>()
        let watch = testbed.monitor.watch(.host(host)) { statuses.record($0) }
        defer { watch.cancel() }
        try testbed.connect()
        try await statuses.waitForLast { $0.isReachable }
        try testbed.disconnect()
        // The monitor reports the path to all watches before it reports the loss to any of them.
        try await statuses.waitForLast { !$0.isReachable }
        #expect(waiting(retrier.connectivity) == Counts(waiters: 1, unreachable: 1))
        #expect(request.retryCount == 0 && server.requests.isEmpty)
        request.cancel()
        #expect((await request.response().error as? URLError)?.code == .cancelled)
    }

    @Test func `waitsForConnectivity retries only after all other retriers`() async throws {
        struct Asked: RequestInterceptor {
            let asked = Recorder<UInt>()

            func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
                urlRequest
            }

            func retry(
                _ request: Request,
                for session: SessionManager,
                dueTo error: any Error
            ) async -> RetryResult {
                asked.record(request.retryCount)
                return .doNotRetry
            }
        }
        let testbed = try OfflineTestbed()
        let server = try testbed.server()
        #expect(!testbed.session.waitsForConnectivity)
        testbed.session.waitsForConnectivity = true
        testbed.session.waitsForConnectivity = true
        #expect(testbed.session.waitsForConnectivity)
        let interceptor = Asked()
        testbed.session.interceptor = interceptor
        let retrier = try #require(testbed.session.context.hooks.connectivityRetrier)
        let request = testbed.session.request(server.url)
        try await wait(for: retrier, 1, 1)
        #expect(interceptor.asked.values == [0])
        try testbed.connect()
        #expect(await request.responseString().value == "ok")
        testbed.session.waitsForConnectivity = false
        try testbed.disconnect()
        #expect(await testbed.session.request("http://203.0.113.7/").response().error != nil)
        #expect(waiting(retrier) == Counts(waiters: 0, unreachable: 0))
    }

    @Test func `waitsForConnectivity ends with the session's total timeout`() async throws {
        let testbed = try OfflineTestbed()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = 0.05
        let session = SessionManager(
            engine: testbed.engine,
            settings: SessionSettings(configuration),
            monitor: testbed.monitor
        )
        session.waitsForConnectivity = true
        let response = await session.request("http://\(OfflineTestbed.host):1/").response()
        #expect((response.error as? URLError)?.code == .notConnectedToInternet)
    }
}
