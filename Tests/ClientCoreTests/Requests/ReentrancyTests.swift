internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization
internal import Testing

@testable internal import ClientCore

/// A request ends exactly once, whatever the program does in one of its callbacks.
///
/// The request of each test is redirected, is challenged, fails its validation, is retried, and then succeeds. So it
/// calls all hooks of the session.
@Suite(.timeLimit(.minutes(5))) struct ReentrancyTests {
    enum Callback: CaseIterable {
        case adapter, retrier, interceptorAdapts, interceptorRetries
        case willSend, didReceive, willFollow, didEndAttempt, willRetry
        case didResume, didSuspend, didCancel, didFinish
        case redirection, redirectionLater, challenge, response, responseLater, newBodyStream, didComplete
        case validator, destination, uploadProgress, downloadProgress, stream, serializer, handler, trust
    }

    enum Action: CaseIterable { case cancel, suspendAndResume, dropSession, startAnother }

    private static let body = Data(repeating: 0x78, count: 100_000)

    private let engine: TransferEngine
    private let server: ScriptedServer
    private let scratch: ScratchDirectory

    init() throws {
        engine = try TransferEngine()
        scratch = try ScratchDirectory()
        server = try ScriptedServer { request in
            switch request.target {
            case "/": .respond(status: 307, headers: [.init("Location", "/next")])
            case "/next" where request.values(of: "Authorization").isEmpty:
                .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
            default: .respond(status: 200, body: Array(Self.body))
            }
        }
    }

    @Test(arguments: Callback.allCases.filter { $0 != .trust }, Action.allCases)
    func `a request ends once`(callback: Callback, action: Action) async throws {
        let program = Program(callback, action)
        defer { program.end() }
        let session = SessionManager(engine: engine)
        setHooks(of: session, program)
        let request = makeRequest(in: consume session, program)
        try await expectOneEnd(of: request, program)
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), arguments: Action.allCases)
    func `a request whose trust is evaluated ends once`(action: Action) async throws {
        let tls = try await TLSServer.shared()
        let program = Program(.trust, action)
        defer { program.end() }
        let policy = ServerTrustPolicy.customEvaluation { _, _ in
            program.called(.trust)
            return true
        }
        let session = tls.session(["valid.test": policy])
        session.startRequestsImmediately = false
        let request = session.request("\(tls.url("valid.test"))/")
        program.begin(consume session, request, another: "\(tls.url("valid.test"))/")
        request.resume()
        try await expectOneEnd(of: request, program)
    }

    private func setHooks(of session: SessionManager, _ program: Program) {
        session.startRequestsImmediately = false
        session.adapter = program
        session.retrier = program.callback == .interceptorRetries ? nil : program
        session.interceptor = program
        session.eventMonitors = [program]
        let delegate = session.delegate
        delegate.taskWillPerformHTTPRedirection = { _, _, _, next in
            program.called(.redirection)
            return next
        }
        delegate.dataTaskDidReceiveResponse = { _, _, _ in
            program.called(.response)
            return .allow
        }
        delegate.taskDidReceiveChallenge = { _, _, _ in
            program.called(.challenge)
            return (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        delegate.taskNeedNewBodyStream = { _, _ in
            program.called(.newBodyStream)
            return InputStream(data: Self.body)
        }
        delegate.taskDidComplete = { _, _, _ in program.called(.didComplete) }
        if program.callback == .redirectionLater {
            delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, next, completion in
                program.called(.redirectionLater)
                completion(next)
            }
        }
        if program.callback == .responseLater {
            delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in
                program.called(.responseLater)
                completion(.allow)
            }
        }
    }

    /// Starts a request whose closures call the program.
    private func makeRequest(in session: SessionManager, _ program: Program) -> Request {
        let url = server.url + "/"
        let request: Request
        switch program.callback {
        case .destination:
            let file = URL(fileURLWithPath: scratch.file("body"))
            request = session.download(url) { _, _ in
                program.called(.destination)
                return (file, [.removePreviousFile])
            }
        case .newBodyStream: request = session.upload(InputStream(data: Self.body), to: url)
        default: request = session.upload(Self.body, to: url)
        }
        program.begin(session, request, another: server.url + "/other")
        if let upload = request as? UploadRequest { setClosures(of: upload, program) }
        return request.resume()
    }

    private func setClosures(of upload: UploadRequest, _ program: Program) {
        upload.uploadProgress(queue: .global()) { _ in program.called(.uploadProgress) }
        upload.downloadProgress(queue: .global()) { _ in program.called(.downloadProgress) }
        if program.callback == .stream { upload.stream { _ in program.called(.stream) } }
        upload.validate { _, _, _ in
            program.called(.validator)
            return program.rejectsResponse ? .failure(Rejection()) : .success
        }
    }

    /// Adds two handlers, and expects that each is called once.
    private func expectOneEnd(of request: Request, _ program: Program) async throws {
        let (handled, errors) = (Recorder<String>(), Recorder<any Error>())
        let serializer = DataResponseSerializer<Int> { _, _, _, error in
            program.called(.serializer)
            return error.map { .failure($0) } ?? .success(1)
        }
        if let request = request as? DataRequest {
            request.response(queue: .global()) { response in
                program.called(.handler)
                if let error = response.error { errors.record(error) }
                handled.record("handler")
            }
            request.response(queue: .global(), responseSerializer: serializer) { _ in
                handled.record("serializer")
            }
            try await handled.wait { $0.count >= 2 }
            _ = await request.response()
            #expect(handled.values.sorted() == ["handler", "serializer"])
        } else if let request = request as? DownloadRequest {
            request.response(queue: .global()) { response in
                if let error = response.error { errors.record(error) }
                handled.record("handler")
            }
            try await handled.wait { !$0.isEmpty }
            _ = await request.response()
            #expect(handled.values == ["handler"])
        }
        try await program.acted.wait { !$0.isEmpty }
        let endsNormally = program.action == .suspendAndResume || program.action == .startAnother
        if endsNormally, program.callback != .didCancel { #expect(errors.values.isEmpty, "\(errors.values)") }
        guard program.action == .startAnother else { return }
        try await program.others.wait { !$0.isEmpty }
        #expect(program.others.values == [true])
    }
}

private struct Rejection: Error {}

/// A program that acts once, in one of its callbacks.
private final class Program: Sendable {
    private struct State {
        var session: SessionManager?
        var request: Request?
        var another = ""
        var hasActed = false
        var isResumed = false
        var hasRejected = false
    }

    let callback: ReentrancyTests.Callback
    let action: ReentrancyTests.Action
    let acted = Recorder<Bool>()
    /// Whether the other request, which ``ReentrancyTests/Action/startAnother`` starts, has succeeded.
    let others = Recorder<Bool>()
    private let state = Mutex(State())

    init(_ callback: ReentrancyTests.Callback, _ action: ReentrancyTests.Action) {
        self.callback = callback
        self.action = action
    }

    /// Takes the only reference to the session. Callbacks before this call have no effect.
    func begin(_ session: SessionManager, _ request: Request, another: String) {
        state.withLock { state in
            state.session = session
            state.request = request
            state.another = another
        }
    }

    /// Releases everything, because the session's hooks and this object form a retain cycle.
    func end() {
        let released = state.withLock { state in
            defer { (state.session, state.request) = (nil, nil) }
            return (state.session, state.request)
        }
        withExtendedLifetime(released) {}
    }

    /// Whether the response must be rejected: the first one.
    var rejectsResponse: Bool {
        state.withLock { state in
            defer { state.hasRejected = true }
            return !state.hasRejected
        }
    }

    func called(_ callback: ReentrancyTests.Callback) {
        guard callback == self.callback else { return }
        let now = state.withLock { state -> State? in
            guard state.request != nil, !state.hasActed else { return nil }
            state.hasActed = true
            defer { if action == .dropSession { state.session = nil } }
            return state
        }
        guard let now, let request = now.request else { return }
        switch action {
        case .cancel: request.cancel()
        case .suspendAndResume: request.suspend().resume()
        case .dropSession: break
        case .startAnother:
            now.session?.request(now.another)
                .response(queue: .global()) { [others] in others.record($0.error == nil) }
                .resume()
        }
        acted.record(true)
    }
}

extension Program: RequestAdapter, RequestRetrier, RequestInterceptor {
    func adapt(_ urlRequest: URLRequest) -> URLRequest {
        called(.adapter)
        return urlRequest
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        called(.retrier)
        completion(error is Rejection, 0)
    }

    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async -> URLRequest {
        called(.interceptorAdapts)
        return urlRequest
    }

    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult {
        called(.interceptorRetries)
        return error is Rejection ? .retry : .doNotRetry
    }
}

extension Program: EventMonitor {
    func request(_ request: Request, willSend urlRequest: URLRequest) { called(.willSend) }

    func request(_ request: Request, didReceive response: HTTPURLResponse) { called(.didReceive) }

    func request(_ request: Request, willFollow response: HTTPURLResponse, to urlRequest: URLRequest) {
        called(.willFollow)
    }

    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?) {
        called(.didEndAttempt)
    }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
        called(.willRetry)
    }

    /// Suspends or cancels the request if the test needs it. These calls take effect before the first response.
    func requestDidResume(_ request: Request) {
        let isFirst = state.withLock { state in
            defer { state.isResumed = true }
            return !state.isResumed
        }
        if isFirst, callback == .didSuspend { request.suspend().resume() }
        if isFirst, callback == .didCancel { request.cancel() }
        called(.didResume)
    }

    func requestDidSuspend(_ request: Request) { called(.didSuspend) }

    func requestDidCancel(_ request: Request) { called(.didCancel) }

    func requestDidFinish(_ request: Request, error: (any Error)?) { called(.didFinish) }
}
