internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Requests over the network, as a program sends them.
@Suite(.timeLimit(.minutes(5))) struct RequestTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    @Test(arguments: [HTTPMethod.get, .post, .put, .patch, .delete, .options])
    func `the method and the header fields are sent`(method: HTTPMethod) async throws {
        let server = try ScriptedServer { .respond("\($0.method) done") }
        let request = session.request(
            server.url,
            method: method,
            headers: ["X-One": "1", "Accept": "text/plain"]
        )
        let response = await request.responseData()
        #expect(response.value == Data("\(method.rawValue) done".utf8))
        #expect(response.response?.statusCode == 200)
        #expect(response.request?.httpMethod == method.rawValue)
        let received = try #require(server.requests.first)
        #expect(received.values(of: "X-One") == ["1"])
        #expect(received.values(of: "Accept") == ["text/plain"])
        #expect(received.values(of: "User-Agent") == ["netwatch/\(NetwatchVersion.current)"])
    }

    @Test func `a URLRequest is sent with its body`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 201) }
        var urlRequest = try URLRequest(url: server.url, method: .post, headers: ["User-Agent": "mine"])
        urlRequest.httpBody = Data("body".utf8)
        let response = await session.request(urlRequest).response()
        #expect(response.response?.statusCode == 201)
        #expect(response.data == Data())
        #expect(response.error == nil)
        #expect(server.requests.first?.body == Array("body".utf8))
        #expect(server.requests.first?.values(of: "User-Agent") == ["mine"])
    }

    @Test(arguments: [404, 500])
    func `an error status is not an error`(status: Int) async throws {
        let server = try ScriptedServer { _ in .respond(status: status, body: [1]) }
        let response = await session.request(server.url).responseData()
        #expect(response.result.isSuccess)
        #expect(response.response?.statusCode == status)
    }

    @Test func `the response is available while the body is still arriving`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", then: .stall(then: .send("x", then: .keep)))
        }
        let arrived = Recorder<Bool>()
        session.delegate.dataTaskDidReceiveResponse = { _, _, _ in
            arrived.record(true)
            return .allow
        }
        let request = session.request(server.url)
        try await arrived.wait { !$0.isEmpty }
        let response = request.response
        #expect(response?.statusCode == 200)
        server.release()
        #expect(await request.responseData().value == Data("x".utf8))
    }

    @Test func `response fields with the same name are joined`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 204, headers: [.init("X-a", "1"), .init("x-A", "2"), .init("ETag", "\"x\"")])
        }
        let response = await session.request(server.url).response().response
        #expect(response?.value(forHTTPHeaderField: "X-A") == "1, 2")
        #expect(response?.value(forHTTPHeaderField: "etag") == "\"x\"")
    }

    @Test func `a session for a unix socket sends every request there`() async throws {
        let path = temporarySocketPath()
        defer { unlink(path) }
        let server = try ScriptedServer(unixPath: path) { .respond($0.target) }
        let session = SessionManager(unixSocketPath: path)
        let response = await session.request("http://netwatch/v1/health").responseData()
        #expect(response.value == Data("/v1/health".utf8))
        #expect(server.requests.count == 1)
    }

    @Test func `the request's timeout is the idle timeout`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        var urlRequest = try URLRequest(url: server.url, method: .get)
        urlRequest.timeoutInterval = 1
        let error = await session.request(urlRequest).response().error
        #expect((error as? URLError)?.code == .timedOut)
    }

    @Test func `a body above the limit fails with the response and the bytes up to the limit`() async throws {
        let server = try ScriptedServer { _ in .respond("123456") }
        let urlRequest = try URLRequest(url: server.url, method: .get)
        let response = await session.transfer(
            urlRequest,
            policy: .singleTransfer(
                maximumResponseBytes: 5,
                totalTimeout: .seconds(600),
                allowsConnectionReuse: true
            )
        )
        .response()
        #expect((response.error as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(response.response?.statusCode == 200)
        #expect(response.data == Data("12345".utf8))
    }

    @Test func `awaiting a suspended request does not resume it`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        let request = session.request(server.url)
        await server.requests(atLeast: 1)
        request.suspend()
        let ended = Recorder<String>()
        let waiting = Task { ended.record(try await request.string) }
        server.release()
        // Waits for two turns of the queue: one for the wait, and one for what the wait has submitted.
        for _ in 0..<2 {
            await withCheckedContinuation { turn in request.core.perform { _ in turn.resume() } }
        }
        let isSuspended = await withCheckedContinuation { turn in
            request.core.perform { turn.resume(returning: $0.state.isSuspended) }
        }
        #expect(isSuspended)
        request.resume()
        try await waiting.value
        #expect(ended.values == ["late"])
    }

    @MainActor @Test func `an awaiting task does not decode the body itself`() async throws {
        struct Decoder: DataDecoder {
            func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
                dispatchPrecondition(condition: .notOnQueue(.main))
                return try JSONDecoder().decode(type, from: data)
            }
        }
        let server = try ScriptedServer { _ in .respond("[1]") }
        let values = try await session.request(server.url).decodable(of: [Int].self, decoder: Decoder())
        #expect(values == [1])
    }

    @Test func `a response has metrics`() async throws {
        let server = try ScriptedServer { _ in .respond("body") }
        let metrics = try #require(await session.request(server.url).response().metrics)
        let transaction = try #require(metrics.transactionMetrics.first)
        #expect(metrics.transactionMetrics.count == 1)
        #expect(transaction.networkProtocolName != nil)
        #expect(transaction.remotePort == Int(server.port))
        #expect(transaction.countOfResponseBodyBytesReceived == 4)
        #expect(try #require(transaction.fetchStartDate) <= #require(transaction.responseEndDate))
    }

    // MARK: Connection reuse and duplicate requests

    /// Returns the number of the connection that a request is sent over, after a GET has left its connection in the
    /// pool.
    private func connection(of urlRequest: URLRequest, _ server: ScriptedServer) async -> Int? {
        _ = await session.request(server.url).response()
        _ = await session.request(urlRequest).response()
        return server.requests.last?.connection
    }

    @Test(arguments: [HTTPMethod.get, .head, .put, .delete, .options, .trace])
    func `an idempotent request uses a pooled connection`(method: HTTPMethod) async throws {
        let server = try ScriptedServer()
        #expect(try await connection(of: URLRequest(url: server.url, method: method), server) == 1)
    }

    @Test(arguments: [HTTPMethod.post, .patch])
    func `a request that is not idempotent uses a new connection`(method: HTTPMethod) async throws {
        let server = try ScriptedServer()
        #expect(try await connection(of: URLRequest(url: server.url, method: method), server) == 2)
    }

    @Test func `a POST with an idempotency key uses a pooled connection`() async throws {
        let server = try ScriptedServer()
        let keyed = try URLRequest(url: server.url, method: .post, headers: ["idempotency-key": "1"])
        #expect(await connection(of: keyed, server) == 1)
    }

    @Test func `a POST is received once if its connection closes`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .respond("") : .close }
        _ = await session.request(server.url).response()
        let response = await session.request(server.url, method: .post).response()
        #expect((response.error as? URLError)?.code == .networkConnectionLost)
        #expect(response.error?.transferFailure?.phase == .response)
        #expect(server.requests.map(\.method) == ["GET", "POST"])
    }

    @Test func `later requests use new connections after dropConnections`() async throws {
        let server = try ScriptedServer()
        _ = await session.request(server.url).response()
        session.dropConnections()
        _ = await session.request(server.url).response()
        #expect(server.requests.map(\.connection) == [1, 2])
    }
}
