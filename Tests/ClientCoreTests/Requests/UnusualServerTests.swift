internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization
internal import Testing

@testable internal import ClientCore

/// Unusual behaviour of servers that the client must handle.
@Suite(.timeLimit(.minutes(5))) struct UnusualServerTests {
    private typealias Header = ScriptedServer.Header

    private let session: SessionManager
    private let scratch: ScratchDirectory

    init() throws {
        session = SessionManager(engine: try TransferEngine())
        scratch = try ScratchDirectory()
    }

    /// Downloads from `server` until the connection is lost after five bytes, and returns the resume data.
    private func brokenOff(_ server: ScriptedServer) async throws -> Data {
        let response = await session.download(server.url).response()
        #expect((response.error as? URLError)?.code == .networkConnectionLost)
        return try #require(response.resumeData)
    }

    private static var firstFive: ScriptedServer.Action {
        .send(
            "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n01234",
            then: .close
        )
    }

    @Test func `a part of another version is discarded and the whole file is requested`() async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 { return Self.firstFive }
            guard !request.values(of: "Range").isEmpty else { return .respond("abcdefghij") }
            let headers = [Header("ETag", "\"two\""), Header("Content-Range", "bytes 5-9/10")]
            return .respond(status: 206, headers: headers, body: Array("fghij".utf8))
        }
        let request = session.download(resumingWith: try await brokenOff(server))
        #expect(try await String(decoding: request.data, as: UTF8.self) == "abcdefghij")
        #expect(server.requests.map { $0.values(of: "Range") } == [[], ["bytes=5-"], []])
        #expect(server.requests.last?.values(of: "If-Range") == [])
    }

    @Test func `a Content-Length near the integer limit does not overflow`() async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 { return Self.firstFive }
            let lengths = "Content-Length: 5\r\nContent-Length: \(Int64.max)\r\n"
            let head = "HTTP/1.1 206 OK\r\nETag: \"one\"\r\nContent-Range: bytes 5-9/10\r\n"
            return .send("\(head)\(lengths)\r\n56789", then: .close)
        }
        let request = session.download(resumingWith: try await brokenOff(server))
        let error = await request.response().error
        #expect((error as? URLError)?.code == .networkConnectionLost, "\(String(describing: error))")
    }

    @Test func `a redirected download is resumed through the redirect`() async throws {
        let server = try ScriptedServer { request in
            guard request.target == "/once" else {
                return .respond(status: 302, headers: [Header("Location", "/once")])
            }
            guard !request.values(of: "Range").isEmpty else { return Self.firstFive }
            let headers = [Header("ETag", "\"one\""), Header("Content-Range", "bytes 5-9/10")]
            return .respond(status: 206, headers: headers, body: Array("56789".utf8))
        }
        let place = URL(fileURLWithPath: scratch.file("kept"))
        let first = session.download("\(server.url)/file", keepingPartialFileAt: place)
        #expect((await first.response().error as? URLError)?.code == .networkConnectionLost)
        let second = session.download("\(server.url)/file", keepingPartialFileAt: place)
        #expect(try await String(decoding: second.data, as: UTF8.self) == "0123456789")
        #expect(server.requests.map(\.target) == ["/file", "/once", "/file", "/once"])
    }

    /// Returns a session with one connection per host, which therefore sends one request at a time.
    private func serialSession() throws -> SessionManager {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 1
        return SessionManager(engine: try TransferEngine(), settings: SessionSettings(configuration))
    }

    /// Returns a request that is suspended while it is redirected, between its hops.
    ///
    /// - Parameter session: A ``serialSession()``.
    private func heldRequest(_ server: ScriptedServer, _ session: SessionManager) async -> DataRequest {
        session.startRequestsImmediately = false
        let request = session.request(server.url)
        session.delegate.taskWillPerformHTTPRedirection = { [core = request.core] _, _, _, next in
            core.assumeIsolated { $0.handle(.suspended) }
            return next
        }
        request.resume()
        await server.requests(atLeast: 1)
        // The session sends this second request only after the first hop has ended. So the queue of the first request
        // has received the end of the hop by now.
        _ = await session.request(server.url + "/other").response()
        #expect(await isHeld(request))
        // Breaks a retain cycle: the closure retains the request, which retains the session's delegate.
        session.delegate.taskWillPerformHTTPRedirection = nil
        return request
    }

    private func isHeld(_ request: Request) async -> Bool {
        await withCheckedContinuation { turn in
            request.core.perform { turn.resume(returning: $0.current.hop?.isHeld == true) }
        }
    }

    private func redirecting() throws -> ScriptedServer {
        try ScriptedServer { request in
            guard request.target == "/" else { return .respond("there") }
            return .respond(status: 302, headers: [Header("Location", "/there")])
        }
    }

    @Test func `a suspended request does not follow a redirect before it is resumed`() async throws {
        let server = try redirecting()
        let session = try serialSession()
        let request = await heldRequest(server, session)
        #expect(server.requests.map(\.target) == ["/", "/other"])
        request.resume()
        #expect(try await request.string == "there")
    }

    @Test func `a request cancelled between two hops ends`() async throws {
        let server = try redirecting()
        let session = try serialSession()
        let request = await heldRequest(server, session)
        request.cancel()
        #expect((await request.response().error as? URLError)?.code == .cancelled)
        #expect(server.requests.map(\.target) == ["/", "/other"])
    }

    @Test func `upload progress keeps its count when a redirect drops the body`() async throws {
        let server = try ScriptedServer { request in
            guard request.method == "POST" else { return .respond("there") }
            return .respond(status: 303, headers: [Header("Location", "/there")])
        }
        let request = session.upload(Data(repeating: 1, count: 1000), to: server.url)
        #expect(try await request.string == "there")
        #expect(request.uploadProgress.completedUnitCount == 1000)
        #expect(request.uploadProgress.totalUnitCount == 1000)
    }

    /// A redirect drops the body before its first byte was sent. So the total of the upload progress becomes 0.
    @Test func `a total that returns to 0 does not trap`() {
        let report = ProgressReport()
        report.update(0, of: 100)
        report.update(0, of: 0)
        #expect(report.progress.totalUnitCount == 100)
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
}

/// Unusual use of requests by a program.
@Suite(.timeLimit(.minutes(5))) struct UnusualCallerTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    @Test func `the error names a session header field that cannot be sent`() async throws {
        let server = try ScriptedServer()
        for value in ["a\u{1}b", "a\r\nX-Injected: 1", "a\0b"] {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpAdditionalHeaders = ["X-Own": value]
            let session = SessionManager(configuration: configuration)
            let error = await session.request(server.url).response().error
            guard case .urlRequestValidationFailed(.invalidHeader("X-Own", value))? = error as? AFError else {
                throw Unexpected(outcome: "\(String(describing: error))")
            }
        }
        #expect(server.connectionCount == 0)
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

    @Test func `a monitor is notified of a retry and its delay`() async throws {
        struct Retrier: RequestRetrier {
            func should(
                _ manager: SessionManager,
                retry request: Request,
                with error: any Error,
                completion: @escaping RequestRetryCompletion
            ) { completion(request.retryCount == 0, 0.01) }
        }
        struct Monitor: EventMonitor {
            let delays = Recorder<TimeInterval>()

            func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
                delays.record(delay)
            }
        }
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let monitor = Monitor()
        session.retrier = Retrier()
        session.eventMonitors = [monitor]
        _ = await session.request(server.url).validate().response()
        #expect(monitor.delays.values == [0.01])
    }

    @Test func `closures that capture their request are released when it has finished`() async throws {
        let server = try ScriptedServer { _ in .respond("body") }
        weak var request: UploadRequest?
        do {
            let made = session.upload(Data("x".utf8), to: server.url)
            request = made
            made.validate { _, _, _ in withExtendedLifetime(made) { .success } }
            made.uploadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.downloadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.stream { _ in withExtendedLifetime(made) {} }
            _ = await made.response()
            made.validate { _, _, _ in withExtendedLifetime(made) { .success } }
            made.downloadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.stream { _ in withExtendedLifetime(made) {} }
        }
        await waitUntil { request == nil }
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
}
