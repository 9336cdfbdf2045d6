internal import ClientCore
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The probes of a running queue for captive portals, with servers on loopback. If the path to a host is not known, a
/// probe uses the path to its own server.
@Suite(.timeLimit(.minutes(5))) struct PathPortalDetectorTests {
    private func detector(_ server: ScriptedServer) throws -> PathPortalDetector {
        PathPortalDetector(try .generate204("\(server.url)/generate_204")) { _ in nil }
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
        #expect(try await detector(server).probe(pathTo: .http("example.com")) == finding)
        #expect(server.requests.map(\.target) == ["/generate_204"])
    }

    @Test func `paths to this machine are not probed`() async throws {
        let server = try ScriptedServer { _ in .respond("<html>") }
        let host = try #require(NetworkHost("127.0.0.1"))
        let local = try #require(PathMonitor.shared.watch(.host(host)) { _ in }.status.path)
        let detector = PathPortalDetector(try .generate204(server.url)) { _ in local }
        #expect(await detector.probe(pathTo: .http("127.0.0.1")) == .clear)
        #expect(server.requests.isEmpty)
    }

    @Test(
        arguments: [(.respond(status: 204), .clear), (.close, .failed)]
            as [(ScriptedServer.Action, PortalFinding)]
    )
    func `hosts on the same path share a probe and its finding`(
        action: ScriptedServer.Action,
        finding: PortalFinding
    ) async throws {
        let server = try ScriptedServer { request in request.number == 1 ? action : .respond("<html>") }
        #expect(try await detector(server).probeTwice(pathChanges: false) == [finding, finding])
        #expect(server.requests.count == 1)
    }

    @Test func `the failure of a probe that began before a path change does not count for a later one`()
        async throws
    {
        let server = try ScriptedServer { request in request.number == 1 ? .close : .respond(status: 204) }
        #expect(try await detector(server).probeTwice(pathChanges: true) == [.failed, .clear])
        #expect(server.requests.count == 2)
    }

    @Test func `a failure is known until the path changes or a probe succeeds`() async throws {
        let server = try ScriptedServer { request in
            request.number == 2 ? .respond(status: 204) : .close
        }
        let detector = try detector(server)
        #expect(await !detector.hasFailed(pathTo: .http("a")))
        #expect(await detector.probe(pathTo: .http("a")) == .failed)
        #expect(await detector.hasFailed(pathTo: .http("b")))
        #expect(await detector.probe(pathTo: .http("b")) == .clear)
        #expect(await !detector.hasFailed(pathTo: .http("a")))
        #expect(await detector.probe(pathTo: .http("a")) == .failed)
        await detector.pathsChanged()
        #expect(await !detector.hasFailed(pathTo: .http("a")))
    }
}

extension PathPortalDetector {
    /// Probes a path for two hosts. The second call begins before the actor processes the result of the first probe,
    /// because this method suspends only when the second call waits.
    fileprivate func probeTwice(pathChanges: Bool) async -> [PortalFinding] {
        let first = start(nil, nil)
        if pathChanges { pathsChanged() }
        let second = await probe(over: nil)
        return [await first.value, second]
    }
}
