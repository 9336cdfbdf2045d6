internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// A request ends exactly once, whatever the program does in one of its callbacks. If the program cancels it, it fails
/// with `URLError.cancelled`. The session is released as soon as the program has no reference to it.
///
/// The request of each test is redirected, is challenged, fails its validation, is retried, and then succeeds. So it
/// calls all hooks of the session.
@Suite(.timeLimit(.minutes(5))) struct ReentrancyTests {
    enum Callback: CaseIterable {
        case adapter, retrier, interceptorAdapts, interceptorRetries
        case willSend, didReceive, willFollow, didEndAttempt, willRetry
        case didResume, didSuspend, didCancel, didFinish
        case redirection, redirectionLater, challenge, response, responseLater, newBodyStream, didComplete
        case validator, uploadProgress, downloadProgress, stream, serializer, handler
        case bodyStream, offlineError
        case downloadValidator, destination, downloadFileProgress, downloadSerializer, downloadHandler
        case form, encodingCompletion
        case trust, trustManager

        /// Whether the request is a download.
        var isOfDownload: Bool {
            switch self {
            case .downloadValidator, .destination, .downloadFileProgress, .downloadSerializer,
                .downloadHandler:
                true
            default: false
            }
        }

        /// Whether the callback is called while the request continues. It is then called before the first retry, which
        /// waits for it.
        var isAsynchronous: Bool {
            self == .uploadProgress || self == .downloadProgress || self == .downloadFileProgress
        }

        /// Whether `cancel()` in the callback comes before the end of the request, which then fails with
        /// `URLError.cancelled`. When the adding of parts to a form begins, there is no request yet.
        var isBeforeEnd: Bool {
            switch self {
            case .didFinish, .destination, .serializer, .handler, .downloadSerializer, .downloadHandler,
                .form:
                false
            default: true
            }
        }

        /// The callbacks of requests that are neither multipart uploads nor evaluate their server.
        static let ordinary = allCases.filter {
            ![.form, .encodingCompletion, .trust, .trustManager].contains($0)
        }
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

    @Test(arguments: Callback.ordinary, Action.allCases)
    func `a request ends once`(callback: Callback, action: Action) async throws {
        let program = ReentrantProgram(callback, action)
        defer { program.end() }
        weak var released: SessionManager?
        let session = SessionManager(engine: engine)
        released = session
        setHooks(of: session, program)
        let request = makeRequest(in: consume session, program)
        try await expectOneEnd(of: request, program)
        await waitUntilReleased { released }
    }

    @Test(arguments: [Callback.form, .encodingCompletion], Action.allCases)
    func `a multipart upload ends once`(callback: Callback, action: Action) async throws {
        let program = ReentrantProgram(callback, action)
        defer { program.end() }
        weak var released: SessionManager?
        let encoded = Recorder<UploadRequest>()
        let session = SessionManager(engine: engine)
        released = session
        setHooks(of: session, program)
        encodeForm(in: consume session, program, encoded)
        try await encoded.wait { !$0.isEmpty }
        let upload = try #require(encoded.values.first)
        try await expectOneEnd(of: upload.resume(), program)
        await waitUntilReleased { released }
    }

    @Test(
        .enabled(if: TestAuthority.isAvailable, "openssl is not installed"),
        arguments: [Callback.trust, .trustManager],
        Action.allCases
    )
    func `a request whose trust is evaluated ends once`(callback: Callback, action: Action) async throws {
        let tls = try await TLSServer.shared()
        let program = ReentrantProgram(callback, action)
        defer { program.end() }
        weak var released: SessionManager?
        let policy = ServerTrustPolicy.customEvaluation { _, _ in
            program.called(.trust)
            return true
        }
        let session = tls.session(ReentrantTrustManager(["valid.test": policy], program))
        released = session
        session.startRequestsImmediately = false
        let request = session.request("\(tls.url("valid.test"))/")
        program.begin(consume session, request, another: "\(tls.url("valid.test"))/")
        request.resume()
        try await expectOneEnd(of: request, program)
        await waitUntilReleased { released }
    }

    private func setHooks(of session: SessionManager, _ program: ReentrantProgram) {
        session.startRequestsImmediately = false
        session.adapter = program
        session.retrier = program.callback == .interceptorRetries ? nil : program
        session.interceptor = program
        if program.callback == .offlineError { waitForPath(session, program) }
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

    /// Lets an ``OfflineRetrier`` retry the rejected response. There is a path to the server, so it does not wait.
    private func waitForPath(_ session: SessionManager, _ program: ReentrantProgram) {
        session.retrier = nil
        session.interceptor = OfflineRetrier(pacing: RetryPacing(firstDelay: .milliseconds(1))) { error in
            program.called(.offlineError)
            return error is Rejection
        }
    }

    /// Starts a request whose closures call the program.
    private func makeRequest(in session: SessionManager, _ program: ReentrantProgram) -> Request {
        let url = server.url + "/"
        let request: Request
        switch program.callback {
        case let callback where callback.isOfDownload: request = makeDownload(in: session, program)
        case .newBodyStream: request = session.upload(InputStream(data: Self.body), to: url)
        case .bodyStream: request = session.upload(ReentrantStream(Self.body, program), to: url)
        default: request = session.upload(Self.body, to: url)
        }
        program.begin(session, request, another: server.url + "/other")
        if let upload = request as? UploadRequest { Self.setClosures(of: upload, program) }
        return request.resume()
    }

    private func makeDownload(in session: SessionManager, _ program: ReentrantProgram) -> DownloadRequest {
        let file = URL(fileURLWithPath: scratch.file("body"))
        let download = session.download(server.url + "/") { _, _ in
            program.called(.destination)
            return (file, [.removePreviousFile])
        }
        download.downloadProgress(queue: .global()) { _ in program.called(.downloadFileProgress) }
        return download.validate { _, _, _, _ in
            program.called(.downloadValidator)
            return program.rejectsResponse ? .failure(Rejection()) : .success
        }
    }

    private static func setClosures(of upload: UploadRequest, _ program: ReentrantProgram) {
        upload.uploadProgress(queue: .global()) { _ in program.called(.uploadProgress) }
        upload.downloadProgress(queue: .global()) { _ in program.called(.downloadProgress) }
        if program.callback == .stream { upload.stream { _ in program.called(.stream) } }
        upload.validate { _, _, _ in
            program.called(.validator)
            return program.rejectsResponse ? .failure(Rejection()) : .success
        }
    }

    /// Starts to encode a form, and records the upload.
    private func encodeForm(
        in session: SessionManager,
        _ program: ReentrantProgram,
        _ encoded: Recorder<UploadRequest>
    ) {
        program.begin(session, nil, another: server.url + "/other")
        session.upload(
            multipartFormData: { form in
                form.append(Self.body, withName: "field")
                program.called(.form)
            },
            to: server.url + "/",
            queue: .global()
        ) { result in
            guard case .success(let upload, _, _) = result else { return }
            Self.setClosures(of: upload, program)
            program.adopt(upload)
            program.called(.encodingCompletion)
            encoded.record(upload)
        }
    }

    // MARK: Expectations

    /// Adds two handlers, and expects that each is called once. Then expects the error that follows from the action.
    private func expectOneEnd(of request: Request, _ program: ReentrantProgram) async throws {
        let (handled, errors) = (Recorder<String>(), Recorder<any Error>())
        if let request = request as? DataRequest { addHandlers(to: request, program, handled, errors) }
        if let request = request as? DownloadRequest { addHandlers(to: request, program, handled, errors) }
        try await handled.wait { $0.count >= 2 }
        if let request = request as? DataRequest { _ = await request.response() }
        if let request = request as? DownloadRequest { _ = await request.response() }
        #expect(handled.values.sorted() == ["handler", "serializer"])
        try await program.acted.wait { !$0.isEmpty }
        expectError(errors.values, program)
        if program.action == .startAnother {
            try await program.others.wait { !$0.isEmpty }
            #expect(program.others.values == [true])
        }
        program.end()
    }

    private func addHandlers(
        to request: DataRequest,
        _ program: ReentrantProgram,
        _ handled: Recorder<String>,
        _ errors: Recorder<any Error>
    ) {
        let serializer = DataResponseSerializer<Int> { _, _, _, error in
            program.called(.serializer)
            return error.map { .failure($0) } ?? .success(1)
        }
        request.response(queue: .global()) { response in
            program.called(.handler)
            if let error = response.error { errors.record(error) }
            handled.record("handler")
        }
        request.response(queue: .global(), responseSerializer: serializer) { _ in
            handled.record("serializer")
        }
    }

    private func addHandlers(
        to request: DownloadRequest,
        _ program: ReentrantProgram,
        _ handled: Recorder<String>,
        _ errors: Recorder<any Error>
    ) {
        let serializer = DownloadResponseSerializer<Int> { _, _, _, error in
            program.called(.downloadSerializer)
            return error.map { .failure($0) } ?? .success(1)
        }
        request.response(queue: .global()) { response in
            program.called(.downloadHandler)
            if let error = response.error { errors.record(error) }
            handled.record("handler")
        }
        request.response(queue: .global(), responseSerializer: serializer) { _ in
            handled.record("serializer")
        }
    }

    /// Expects that a cancelled request was really cancelled, and that a request which was only suspended has
    /// succeeded.
    ///
    /// A request whose session was released may have ended before: with a success, or with the first response, because
    /// without a session it is not retried.
    private func expectError(_ errors: [any Error], _ program: ReentrantProgram) {
        let isCancelled = (errors.first as? URLError)?.code == .cancelled
        switch (program.action, program.callback) {
        case (_, .didCancel): #expect(isCancelled, "\(errors)")
        case (.cancel, let callback) where callback.isBeforeEnd: #expect(isCancelled, "\(errors)")
        case (.dropSession, _):
            let ends = errors.map { ($0 as? AFError)?.isSessionDeinitializedError == true || $0 is Rejection }
            #expect(ends.allSatisfy { $0 }, "\(errors)")
        default: #expect(errors.isEmpty, "\(errors)")
        }
    }
}
