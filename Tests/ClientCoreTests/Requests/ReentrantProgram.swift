internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport

@testable internal import ClientCore

/// The error of the first response.
struct Rejection: Error {}

/// A program that acts once, in one of its callbacks.
final class ReentrantProgram: Sendable {
    private struct State {
        var session: SessionManager?
        var request: Request?
        var another = ""
        var hasBegun = false
        var hasActed = false
        var isResumed = false
        var hasRejected = false
    }

    let callback: ReentrancyTests.Callback
    let action: ReentrancyTests.Action
    let acted = Recorder<Bool>()
    /// Whether the other request, which ``ReentrancyTests/Action/startAnother`` starts, has succeeded.
    let others = Recorder<Bool>()
    private let state = Lock(State())

    init(_ callback: ReentrancyTests.Callback, _ action: ReentrancyTests.Action) {
        self.callback = callback
        self.action = action
    }

    /// Takes the only reference to the session. Callbacks before this call have no effect.
    ///
    /// - Parameters:
    ///   - request: The request to act on; `nil` if it has not been created yet.
    ///   - another: The URL of the request that ``ReentrancyTests/Action/startAnother`` starts.
    func begin(_ session: SessionManager, _ request: Request?, another: String) {
        state.withLock { state in
            state.session = session
            state.request = request
            state.another = another
            state.hasBegun = true
        }
    }

    /// Sets the request to act on, which has been created only now.
    func adopt(_ request: Request) {
        state.withLock { $0.request = request }
    }

    /// Releases everything, because the session's hooks and this object form a retain cycle.
    func end() {
        let released = state.withLock { state in
            defer { (state.session, state.request, state.hasBegun) = (nil, nil, false) }
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
            guard state.hasBegun, !state.hasActed else { return nil }
            state.hasActed = true
            defer { if action == .dropSession { state.session = nil } }
            return state
        }
        guard let now else { return }
        switch action {
        case .cancel: now.request?.cancel()
        case .suspendAndResume: now.request?.suspend().resume()
        case .dropSession: break
        case .startAnother:
            now.session?.request(now.another)
                .response(queue: .global()) { [others] in others.record($0.error == nil) }
                .resume()
        }
        acted.record(true)
    }
}

extension ReentrantProgram: RequestAdapter, RequestRetrier, RequestInterceptor {
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
        let isRejection = error is Rejection
        guard callback.isAsynchronous else { return completion(isRejection, 0) }
        // Without this wait, the request could end before the callback is called.
        Task { [acted] in
            try? await acted.wait { !$0.isEmpty }
            completion(isRejection, 0)
        }
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

extension ReentrantProgram: EventMonitor {
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

/// The policies of a program that acts when a policy is looked up.
final class ReentrantTrustManager: ServerTrustPolicyManager {
    private let program: ReentrantProgram

    init(_ policies: [String: ServerTrustPolicy], _ program: ReentrantProgram) {
        self.program = program
        super.init(policies: policies)
    }

    override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        program.called(.trustManager)
        return super.serverTrustPolicy(forHost: host)
    }
}

/// A body whose program acts when the body is read.
final class ReentrantStream: InputStream {
    private let program: ReentrantProgram
    private var rest: ArraySlice<UInt8>

    init(_ body: Data, _ program: ReentrantProgram) {
        self.program = program
        rest = Array(body)[...]
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        program.called(.bodyStream)
        let piece = rest.prefix(maxLength)
        for (index, byte) in piece.enumerated() { buffer[index] = byte }
        rest = rest.dropFirst(piece.count)
        return piece.count
    }
}
