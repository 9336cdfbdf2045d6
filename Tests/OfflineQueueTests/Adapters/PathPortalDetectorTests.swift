internal import ClientCore
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The probes of a running queue for captive portals, with servers on loopback. If the path to a host is not known, a
/// probe uses the path to its own server.
@Suite(.timeLimit(.minutes(1))) struct PathPortalDetectorTests {
    private func detector(_ server: ScriptedServer, _ calls: Recorder<String> = Recorder()) throws
        -> PathPortalDetector
    {
        PathPortalDetector(try .generate204("\(server.url)/generate_204")) { host in
            calls.record(host)
            return nil
        }
    }

    @Test(
        arguments: [
            (.respond(status: 204), .clear), (.respond(status: 200), .clear),
            (.respond("<html>Log in"), .captive(page: nil)), (.respond(status: 511), .captive(page: nil)),
            (
                .respond(status: 302, headers: [.init("Location", "http://portal.example/in")]),
                .captive(page: "http://portal.example/in")
            ),
            (.respond(status: 404), .failed), (.respond(status: 503), .failed), (.close, .failed),
            (.reset, .failed),
        ] as [(ScriptedServer.Action, PortalFinding)]
    )
    func `a response that a portal would send is a portal, and no response is a failure`(
        action: ScriptedServer.Action,
        finding: PortalFinding
    ) async throws {
        let server = try ScriptedServer { _ in action }
        #expect(try await detector(server).probe(pathTo: "example.com") == finding)
        #expect(server.requests.map(\.target) == ["/generate_204"])
    }

    @Test func `paths to this machine are not probed`() async throws {
        let server = try ScriptedServer { _ in .respond("<html>") }
        let host = try #require(NetworkHost("127.0.0.1"))
        let local = try #require(PathMonitor.shared.watch(.host(host)) { _ in }.status.path)
        let detector = PathPortalDetector(try .generate204(server.url)) { _ in local }
        #expect(await detector.probe(pathTo: "127.0.0.1") == .clear)
        #expect(server.requests.isEmpty)
    }

    @Test func `hosts on the same path share a probe`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond(status: 204)) }
        let calls = Recorder<String>()
        let detector = try detector(server, calls)
        let findings = await withTaskGroup { group in
            for index in 0..<50 { group.addTask { await detector.probe(pathTo: "host\(index)") } }
            group.addTask {
                try? await calls.wait { $0.count == 50 }
                await server.requests(atLeast: 1)
                server.release()
                return .clear
            }
            return await group.reduce(into: Set<PortalFinding>()) { $0.insert($1) }
        }
        #expect(findings == [.clear])
        #expect(server.requests.count < 50)
    }

    /// Runs a probe for the host `b` while one for the host `a` is in progress, whose connection the server closes.
    private func probeDuringFailure(pathChanges: Bool) async throws -> (PortalFinding, requests: Int) {
        let server = try ScriptedServer { request in
            request.number == 1 ? .stall(then: .close) : .respond(status: 204)
        }
        let calls = Recorder<String>()
        let detector = try detector(server, calls)
        async let first = detector.probe(pathTo: "a")
        await server.requests(atLeast: 1)
        if pathChanges { await detector.pathsChanged() }
        async let second = detector.probe(pathTo: "b")
        try await calls.wait { $0.contains("b") }
        server.release()
        #expect(await first == .failed)
        return (await second, server.requests.count)
    }

    @Test func `the failure of a probe that began before a path change does not count for a later one`()
        async throws
    {
        let (finding, requests) = try await probeDuringFailure(pathChanges: true)
        #expect(finding == .clear && requests == 2)
    }

    @Test func `hosts on the same path share the failure of a probe`() async throws {
        // The call for `b` runs a second probe only if it begins after the first one has ended.
        let (finding, requests) = try await probeDuringFailure(pathChanges: false)
        #expect(finding == (requests == 1 ? .failed : .clear))
    }

    @Test func `a failure is known until the path changes or a probe succeeds`() async throws {
        let server = try ScriptedServer { request in
            request.number == 2 ? .respond(status: 204) : .close
        }
        let detector = try detector(server)
        #expect(await !detector.hasFailed(pathTo: "a"))
        #expect(await detector.probe(pathTo: "a") == .failed)
        #expect(await detector.hasFailed(pathTo: "b"))
        #expect(await detector.probe(pathTo: "b") == .clear)
        #expect(await !detector.hasFailed(pathTo: "a"))
        #expect(await detector.probe(pathTo: "a") == .failed)
        await detector.pathsChanged()
        #expect(await !detector.hasFailed(pathTo: "a"))
    }
}
