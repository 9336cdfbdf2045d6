internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization
internal import Testing

@testable internal import ClientCore

/// Adapters, retriers and interceptors.
@Suite(.timeLimit(.minutes(5))) struct RetryTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    private struct Refused: Error {}

    /// Adds a header field with the number of the attempt.
    private final class Numbering: RequestAdapter {
        private let count = Atomic<Int>(0)

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var urlRequest = urlRequest
            let number = count.wrappingAdd(1, ordering: .relaxed).newValue
            urlRequest.setValue("\(number)", forHTTPHeaderField: "X-Attempt")
            return urlRequest
        }
    }

    /// Records the retry count at each call. A closure decides about the retry.
    private final class Retrier: RequestRetrier {
        let asked = Lock<[UInt]>([])
        private let answer: @Sendable (UInt, @escaping RequestRetryCompletion) -> Void

        init(_ answer: @escaping @Sendable (UInt, @escaping RequestRetryCompletion) -> Void) {
            self.answer = answer
        }

        func should(
            _ manager: SessionManager,
            retry request: Request,
            with error: any Error,
            completion: @escaping RequestRetryCompletion
        ) {
            asked.withLock { $0.append(request.retryCount) }
            answer(request.retryCount, completion)
        }
    }

    /// Records each call with its URL.
    private struct Router: URLRequestConvertible {
        let url: String
        let asked: Recorder<String>

        func asURLRequest() throws -> URLRequest {
            asked.record(url)
            return try URLRequest(url: url, method: .get)
        }
    }

    @Test func `each attempt is adapted again, and the router is called once`() async throws {
        let server = try ScriptedServer { $0.number < 3 ? .respond(status: 503) : .respond("ok") }
        let asked = Recorder<String>()
        session.adapter = Numbering()
        session.retrier = Retrier { $1(true, 0) }
        let request = session.request(Router(url: server.url, asked: asked)).validate()
        #expect(try await request.string == "ok")
        #expect(server.requests.flatMap { $0.values(of: "X-Attempt") } == ["1", "2", "3"])
        #expect(asked.values.count == 1)
        #expect(request.retryCount == 2)
    }

    @Test func `a request fails if its retrier releases the completion`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        session.retrier = Retrier { _, _ in }
        let response = await session.request(server.url).validate().response()
        #expect((response.error as? AFError)?.responseCode == 503)
    }

    @Test func `cancelling a request does not wait for its retrier`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let held = Recorder<RequestRetryCompletion>()
        session.retrier = Retrier { held.record($1) }
        let request = session.request(server.url).validate()
        async let response = request.response()
        try await held.wait { !$0.isEmpty }
        request.cancel()
        #expect((await response.error as? URLError)?.code == .cancelled)
        held.values.first?(true, 0)
        #expect(server.requests.count == 1)
    }

    @Test func `cancelling a request does not wait for its retry delay`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let asked = Recorder<UInt>()
        session.retrier = Retrier {
            asked.record($0)
            $1(true, 3600)
        }
        let request = session.request(server.url).validate()
        async let response = request.response()
        try await asked.wait { !$0.isEmpty }
        request.cancel()
        #expect((await response.error as? URLError)?.code == .cancelled)
    }

    @Test func `an adapter's error is the request's error, and the retrier is called with it`() async throws {
        struct Refusing: RequestAdapter {
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw Refused() }
        }
        session.adapter = Refusing()
        let retrier = Retrier { $1($0 < 2, 0) }
        session.retrier = retrier
        #expect(await session.request("http://127.0.0.1:1/").response().error is Refused)
        #expect(retrier.asked.withLock { $0 } == [0])
    }

    @Test func `an interceptor adapts after the adapter and retries after the retrier`() async throws {
        struct Interceptor: RequestInterceptor {
            func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
                var urlRequest = urlRequest
                let number = urlRequest.value(forHTTPHeaderField: "X-Attempt") ?? "none"
                urlRequest.setValue("after \(number)", forHTTPHeaderField: "X-Intercepted")
                return urlRequest
            }

            func retry(
                _ request: Request,
                for session: SessionManager,
                dueTo error: any Error
            ) async -> RetryResult {
                request.retryCount == 0 ? .retryWithDelay(0.001) : .doNotRetryWithError(Refused())
            }
        }
        let server = try ScriptedServer { _ in .respond(status: 503) }
        session.adapter = Numbering()
        session.retrier = Retrier { $1(false, 0) }
        session.interceptor = Interceptor()
        #expect(await session.request(server.url).validate().response().error is Refused)
        #expect(server.requests.flatMap { $0.values(of: "X-Intercepted") } == ["after 1", "after 2"])
    }

    @Test(arguments: [true, false])
    func `a consumed stream is replaced by the delegate's new stream`(isRenewed: Bool) async throws {
        let server = try ScriptedServer { $0.number == 1 ? .respond(status: 503) : .respond("ok") }
        session.retrier = Retrier { $1($0 == 0, 0) }
        if isRenewed {
            session.delegate.taskNeedNewBodyStream = { _, _ in InputStream(data: Data("body".utf8)) }
        }
        let request = session.upload(InputStream(data: Data("body".utf8)), to: server.url).validate()
        let response = await request.responseString()
        #expect(response.value == (isRenewed ? "ok" : nil))
        #expect((response.error as? URLError)?.code == (isRenewed ? nil : .requestBodyStreamExhausted))
        #expect(server.requests.allSatisfy { $0.body == Array("body".utf8) })
        #expect(server.requests.count == (isRenewed ? 2 : 1))
    }

    @Test func `a request is retried after its bodies have reported progress`() async throws {
        let body = Data(repeating: 1, count: 100_000)
        let server = try ScriptedServer { request in
            let status = request.number < 3 ? 503 : 200
            return .respond(status: status, body: request.body)
        }
        session.retrier = Retrier { $1(true, 0) }
        let request = session.upload(body, to: server.url).validate()
        #expect(try await request.data == body)
        #expect(server.requests.map(\.body.count) == [100_000, 100_000, 100_000])
        #expect(request.uploadProgress.fractionCompleted == 1)
        #expect(request.progress.completedUnitCount == 100_000)
    }

    @Test func `a 404 with a body is retried`() async throws {
        let server = try ScriptedServer { request in
            request.number < 3 ? .respond(status: 404, body: Array("not yet".utf8)) : .respond("here")
        }
        session.retrier = Retrier { $1(true, 0) }
        #expect(try await session.request(server.url).validate().string == "here")
    }

    @Test func `cancelling a request during a retrier's delay ends it`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let asked = Recorder<UInt>()
        session.retrier = Retrier {
            asked.record($0)
            $1(true, 3600)
        }
        let errors = Recorder<URLError.Code?>()
        let request = session.request(server.url).validate().response(queue: .global()) { response in
            errors.record((response.error as? URLError)?.code)
        }
        try await asked.wait { !$0.isEmpty }
        request.cancel()
        try await errors.wait { !$0.isEmpty }
        #expect(errors.values == [.cancelled])
    }

    @Test func `a request's body stream is not sent twice`() async throws {
        struct Once: RequestInterceptor {
            func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
                urlRequest
            }

            func retry(
                _ request: Request,
                for session: SessionManager,
                dueTo error: any Error
            ) async -> RetryResult { request.retryCount == 0 ? .retry : .doNotRetry }
        }
        let server = try ScriptedServer { _ in .respond(status: 503) }
        session.interceptor = Once()
        var request = try URLRequest(url: server.url, method: .post)
        request.httpBodyStream = InputStream(data: Data("body".utf8))
        let response = await session.request(request).validate().response()
        #expect((response.error as? URLError)?.code == .requestBodyStreamExhausted)
        #expect(server.requests.map(\.body) == [Array("body".utf8)])
    }

    @Test func `a monitor is notified of a retry and its delay`() async throws {
        struct Monitor: EventMonitor {
            let delays = Recorder<TimeInterval>()

            func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
                delays.record(delay)
            }
        }
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let monitor = Monitor()
        session.retrier = Retrier { $1($0 == 0, 0.01) }
        session.eventMonitors = [monitor]
        _ = await session.request(server.url).validate().response()
        #expect(monitor.delays.values == [0.01])
    }
}
