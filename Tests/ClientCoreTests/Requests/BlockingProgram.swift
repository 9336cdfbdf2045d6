internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport

@testable internal import ClientCore

/// A program whose code does not return from the first call of one of its callbacks until ``release()``.
///
/// Its requests are redirected, are challenged, fail their validation, are retried, and then succeed. So they call all
/// callbacks.
final class BlockingProgram: Sendable {
    enum Callback: CaseIterable {
        /// The adapter of a retry. That of a first attempt runs on the thread that creates the request.
        case retryAdapter
        case retrier, interceptorAdapts, interceptorRetries
        case willSend, didReceive, willFollow, didEndAttempt, willRetry
        case didResume, didSuspend, didCancel, didFinish
        case redirection, redirectionLater, challenge, response, responseLater, newBodyStream, didComplete
        case validator, destination, uploadProgress, downloadProgress, stream, serializer, handler
        case form, encodingCompletion
    }

    private struct Rejection: Error {}

    private struct State {
        var hasBlocked = false
        var isRetried = false
        var isResumed = false
        var hasRejected = false
    }

    private static let body = Data(repeating: 0x78, count: 100_000)

    let callback: Callback
    /// One value when the callback blocks.
    let blocked = Recorder<Bool>()
    /// The error of each ended request; `nil` after a success.
    let ended = Recorder<(any Error)?>()
    /// The destination of a download.
    private let file: URL
    private let state = Lock(State())
    private let isReleased = DispatchSemaphore(value: 0)
    /// The serial queue of the handler and of the progress closures. So the handler waits for each of them.
    private let queue = DispatchQueue(label: "program")

    /// - Parameter file: The destination if the request is a download.
    init(_ callback: Callback, downloadingTo file: URL) {
        self.callback = callback
        self.file = file
    }

    /// Lets the call return.
    func release() { isReleased.signal() }

    // MARK: The server

    /// Returns the server's action for a request of a program. The body of other responses is the request's target.
    static func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        switch request.target {
        case "/program": .respond(status: 307, headers: [.init("Location", "/next")])
        case "/next" where request.values(of: "Authorization").isEmpty:
            .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
        case "/next": .respond(status: 200, body: Array(body))
        default: .respond(request.target)
        }
    }

    // MARK: The request

    /// Sets the hooks of a session, and starts a request that calls them.
    func start(in session: SessionManager, _ server: ScriptedServer) {
        session.adapter = self
        session.retrier = callback == .interceptorRetries ? nil : self
        session.interceptor = self
        session.eventMonitors = [self]
        setClosures(of: session.delegate)
        // Requests start when all their closures are set.
        session.startRequestsImmediately = false
        let url = server.url + "/program"
        switch callback {
        case .form, .encodingCompletion: uploadForm(in: session, to: url)
        case .destination: download(in: session, from: url)
        case .newBodyStream: begin(session.upload(InputStream(data: Self.body), to: url))
        default: begin(session.upload(Self.body, to: url))
        }
    }

    private func setClosures(of delegate: SessionDelegate) {
        delegate.taskWillPerformHTTPRedirection = { _, _, _, next in
            self.called(.redirection)
            return next
        }
        delegate.dataTaskDidReceiveResponse = { _, _, _ in
            self.called(.response)
            return .allow
        }
        delegate.taskDidReceiveChallenge = { _, _, _ in
            self.called(.challenge)
            return (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        delegate.taskNeedNewBodyStream = { _, _ in
            self.called(.newBodyStream)
            return InputStream(data: Self.body)
        }
        delegate.taskDidComplete = { _, _, _ in self.called(.didComplete) }
        if callback == .redirectionLater {
            delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, next, completion in
                self.called(.redirectionLater)
                completion(next)
            }
        }
        if callback == .responseLater {
            delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in
                self.called(.responseLater)
                completion(.allow)
            }
        }
    }

    private func uploadForm(in session: SessionManager, to url: String) {
        session.upload(
            multipartFormData: { form in
                self.called(.form)
                form.append(Self.body, withName: "file")
            },
            to: url,
            queue: queue
        ) { result in
            self.called(.encodingCompletion)
            switch result {
            case .success(let request, _, _): self.begin(request)
            case .failure(let error): self.ended.record(error)
            }
        }
    }

    private func download(in session: SessionManager, from url: String) {
        let request = session.download(url) { _, _ in
            self.called(.destination)
            return (self.file, [])
        }
        request.response(queue: queue) { self.ended.record($0.error) }.resume()
    }

    private func begin(_ request: UploadRequest) {
        request.uploadProgress(queue: queue) { _ in self.called(.uploadProgress) }
        request.downloadProgress(queue: queue) { _ in self.called(.downloadProgress) }
        if callback == .stream { request.stream { _ in self.called(.stream) } }
        request.validate { _, _, _ in
            self.called(.validator)
            return self.rejectsResponse ? .failure(Rejection()) : .success
        }
        let serializer = DataResponseSerializer<Int> { _, _, _, error in
            self.called(.serializer)
            return error.map { .failure($0) } ?? .success(1)
        }
        request.response(queue: queue, responseSerializer: serializer) { response in
            self.called(.handler)
            self.ended.record(response.error)
        }
        request.resume()
    }

    /// Whether the response must be rejected: the first one.
    private var rejectsResponse: Bool {
        state.withLock { state in
            defer { state.hasRejected = true }
            return !state.hasRejected
        }
    }

    // MARK: Blocking

    /// Returns whether this call is the one that blocks.
    private func blocks(_ callback: Callback) -> Bool {
        guard callback == self.callback else { return false }
        return state.withLock { state in
            defer { state.hasBlocked = true }
            return !state.hasBlocked
        }
    }

    private func called(_ callback: Callback) {
        if blocks(callback) { block() }
    }

    /// Like ``called(_:)``, but blocks no thread of the cooperative pool.
    private func calledAsync(_ callback: Callback) async {
        guard blocks(callback) else { return }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread {
                self.block()
                continuation.resume()
            }
        }
    }

    private func block() {
        blocked.record(true)
        isReleased.wait()
    }
}

extension BlockingProgram: RequestAdapter, RequestRetrier, RequestInterceptor {
    func adapt(_ urlRequest: URLRequest) -> URLRequest {
        if state.withLock({ $0.isRetried }) { called(.retryAdapter) }
        return urlRequest
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        called(.retrier)
        state.withLock { $0.isRetried = true }
        completion(error is Rejection, 0)
    }

    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async -> URLRequest {
        await calledAsync(.interceptorAdapts)
        return urlRequest
    }

    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult {
        await calledAsync(.interceptorRetries)
        return error is Rejection ? .retry : .doNotRetry
    }
}

extension BlockingProgram: EventMonitor {
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

    /// Suspends or cancels the first request if the test needs it. These calls take effect before the first response.
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
