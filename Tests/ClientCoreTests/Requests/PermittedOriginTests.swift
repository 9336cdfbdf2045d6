internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Requests that may be sent only to some origins.
@Suite(.timeLimit(.minutes(5))) struct PermittedOriginTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    /// Sends a request that only the origin of `server` may receive.
    private func send(_ url: String, permitting server: ScriptedServer) async throws -> DefaultDataResponse {
        let permitted = try TransferOrigin(url: server.url)
        var plan = RequestPlan(try URLRequest(url: url, method: .get, headers: ["X-Secret": "hush"]))
        plan.policy.permitsOrigin = { $0 == permitted }
        return await session.start(plan).response()
    }

    private func refused(_ response: DefaultDataResponse) -> TransferOrigin? {
        (response.error as? OriginNotPermitted)?.origin
    }

    @Test func `a redirect to an origin that is not permitted is not followed`() async throws {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let elsewhere = ScriptedServer.Header("Location", other.url + "/")
        let server = try ScriptedServer { request in
            request.target == "/here"
                ? .respond("here")
                : .respond(
                    status: 307,
                    headers: [request.target == "/" ? .init("Location", "/here") : elsewhere]
                )
        }
        #expect(try await send(server.url + "/", permitting: server).data == Data("here".utf8))
        let response = try await send(server.url + "/away", permitting: server)
        let origin = try TransferOrigin(url: other.url)
        #expect(refused(response) == origin)
        #expect(other.requests.isEmpty)
    }

    /// An adapter that sends the requests to another server.
    private struct RedirectingAdapter: RequestAdapter {
        let target: @Sendable () -> String?

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var request = urlRequest
            if let target = target() { request.url = URL(string: target) }
            return request
        }
    }

    @Test func `the origin that an adapter chooses is checked, at each retry, too`() async throws {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let server = try ScriptedServer { _ in .respond("") }
        let elsewhere = other.url
        let attempts = Lock(0)
        session.adapter = RedirectingAdapter {
            attempts.withLock { count in
                count += 1
                return count == 1 ? nil : elsewhere
            }
        }
        session.retrier = OneRetry()
        let permitted = try TransferOrigin(url: server.url)
        var plan = RequestPlan(try URLRequest(url: server.url, method: .get))
        plan.policy.permitsOrigin = { $0 == permitted }
        let response = await session.start(plan).validate(statusCode: 500..<501).response()
        let origin = try TransferOrigin(url: other.url)
        #expect(refused(response) == origin)
        #expect(attempts.withLock { $0 } == 2 && server.requests.count == 1 && other.requests.isEmpty)
    }

    private struct OneRetry: RequestRetrier {
        func should(
            _ manager: SessionManager,
            retry request: Request,
            with error: any Error,
            completion: @escaping RequestRetryCompletion
        ) {
            completion(request.retryCount == 0, 0)
        }
    }
}
