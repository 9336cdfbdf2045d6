internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Credentials on the wire, to a real server.
@Suite(.timeLimit(.minutes(5))) struct CredentialWireTests {
    private let directory = TemporaryDirectory(marker: "credential")

    /// Opens a queue with its own session and path monitor, as a program does.
    private func open() async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(withLongTimeouts: directory.path)
        configuration.limits.diskReserve = 0
        (configuration.backoffBase, configuration.backoffCap) = (.seconds(3600), .seconds(7200))
        let queue = try await OfflineQueue(configuration: configuration)
        try await queue.start()
        return queue
    }

    private var options: EnqueueOptions {
        var options = EnqueueOptions(id: "a")
        options.credential = "token"
        return options
    }

    @Test func `an interceptor adds a token and refreshes it after a response with 401`() async throws {
        let server = try ScriptedServer { request in
            request.values(of: "Authorization") == ["Bearer new-secret"]
                ? .respond("thanks") : .respond(status: 401, headers: [], body: [])
        }
        let queue = try await open()
        let token = TestToken("old-secret")
        let interceptor = TestInterceptor(token: token, next: "new-secret")
        try await queue.register(
            try QueueCredential(interceptor: interceptor, origins: [server.url]),
            as: "token"
        )
        let request = QueueRequest(method: "POST", url: server.url + "/a", body: Data("b".utf8))
        guard case .delivered(_, 200, _) = try await queue.send(request, options: options) else {
            Issue.record("not delivered: \(try await queue.request("a") as Any)")
            return
        }
        #expect(token.refreshes == 1)
        #expect(
            server.requests.map { $0.values(of: "Authorization") } == [
                ["Bearer old-secret"], ["Bearer new-secret"],
            ]
        )
        #expect(server.requests.allSatisfy { $0.body == Array("b".utf8) })
        await queue.stop()
        #expect(try files(in: directory.path, containing: "-secret").isEmpty)
    }

    /// An adapter that sets header fields.
    private struct FieldAdapter: RequestAdapter {
        let fields: [String: String]

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var request = urlRequest
            for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
            return request
        }
    }

    @Test func `an adapter's value with a control character is not stored`() async throws {
        let server = try ScriptedServer { _ in .respond("") }
        let queue = try await open()
        let adapter = FieldAdapter(fields: ["Authorization": "Bearer line-secret\u{7}"])
        try await queue.register(try QueueCredential(adapter: adapter, origins: [server.url]), as: "token")
        _ = try await queue.send(QueueRequest(method: "POST", url: server.url), options: options)
        let details = try #require(try await queue.request("a"))
        #expect(details.summary.state == .held && details.summary.holdReason == .auth)
        #expect(details.summary.lastError?.contains("not valid") == true)
        #expect(server.requests.isEmpty)
        await queue.stop()
        #expect(try files(in: directory.path, containing: "line-secret").isEmpty)
    }

    @Test func `a public field that an adapter sets is not replaced in the response`() async throws {
        let type = ScriptedServer.Header("Content-Type", "application/json")
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [type], body: Array("{}".utf8))
        }
        let queue = try await open()
        let adapter = FieldAdapter(fields: ["Accept": "application/json", "X-Token": "token-secret"])
        try await queue.register(try QueueCredential(adapter: adapter, origins: [server.url]), as: "token")
        var options = options
        options.expectation = Expectation(contentType: "application/json")
        let result = try await queue.send(QueueRequest(method: "POST", url: server.url), options: options)
        guard case .delivered = result else { return #expect(Bool(false), "\(result)") }
        let response = try #require(try await queue.request("a")?.response)
        #expect(response.headers.contains { $0.value == "application/json" })
        await queue.stop()
    }

    @Test func `a redirect takes no credential to another server`() async throws {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let server = try ScriptedServer { _ in
            .respond(status: 307, headers: [.init("Location", other.url + "/?key=query-secret")], body: [])
        }
        let queue = try await open()
        let value = CredentialValue.queryItem(name: "key", value: "query-secret")
        try await queue.register(try QueueCredential(value, origins: [server.url]), as: "token")
        let request = QueueRequest(method: "PUT", url: server.url + "/a")
        guard case .dead(_, let reason) = try await queue.send(request, options: options) else {
            Issue.record("the redirect was not refused")
            return
        }
        #expect(reason.hasPrefix("HTTP 307"), "\(reason)")
        #expect(server.requests.map(\.target) == ["/a?key=query-secret"])
        #expect(other.requests.isEmpty)
        await queue.stop()
        #expect(try files(in: directory.path, containing: "query-secret").isEmpty)
    }
}
