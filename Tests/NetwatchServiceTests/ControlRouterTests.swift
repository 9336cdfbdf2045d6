internal import Foundation
internal import NIOHTTP1
internal import Testing

@testable internal import NetwatchService

@Suite struct ControlRouterTests {
    private let router = ControlRouter([
        .init(.GET, "/v1/things", access: .none) { _ in .json(["list"]) },
        .init(.GET, "/v1/things/{id}", access: .none) { .json($0.parameters) },
        .init(.DELETE, "/v1/things/{id}", access: .none) { _ in .json(["gone"]) },
        .init(.POST, "/v1/things/{id}/{verb}", access: .none) { .json($0.parameters) },
    ])

    private func answer(_ method: HTTPMethod, _ target: String) async throws -> (UInt, String) {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            peer: PeerCredentials(pid: 1, uid: 0, gid: 0)
        )
        let response = await router.respond(to: request)
        let body = String(decoding: response.body, as: UTF8.self)
        return (response.status.code, body.trimmingCharacters(in: .newlines))
    }

    @Test(arguments: [
        (HTTPMethod.GET, "/v1/things", #"["list"]"#),
        (.GET, "/v1/things/7", #"{"id":"7"}"#),
        (.HEAD, "/v1/things/7", #"{"id":"7"}"#),
        (.GET, "/v1/things/a%2Fb?x=1", #"{"id":"a/b"}"#),
        (.DELETE, "/v1/things/7", #"["gone"]"#),
        (.POST, "/v1/things/7/hold", #"{"id":"7","verb":"hold"}"#),
    ])
    func `a path finds its handler`(method: HTTPMethod, target: String, body: String) async throws {
        #expect(try await answer(method, target) == (200, body))
    }

    @Test(arguments: [
        "/v1/things/", "/v1/things//hold", "/v1/thing", "/v1", "/", "/v1/things/a/b/c", "//v1/things",
    ])
    func `an unknown path gets 404`(target: String) async throws {
        #expect(try await answer(.GET, target).0 == 404)
    }

    @Test func `an unaccepted method gets 405 with the accepted ones`() async throws {
        let (status, body) = try await answer(.PUT, "/v1/things/7")
        #expect(status == 405 && body.contains("DELETE, GET, HEAD"))
    }
}
