internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport

/// Calls of the program's code in one session that do not return until ``release()``.
struct BlockedCalls {
    private let hook: ProcessOptions.Hook
    private let count: Int
    private let blocked = Recorder<Bool>()
    private let ended = Recorder<Bool>()
    /// The URLs of the requests that are retried.
    private let retried = Recorder<String>()
    private let gate = Gate()

    /// - Parameters:
    ///   - hook: The code that is called.
    ///   - count: The number of calls.
    init(_ hook: ProcessOptions.Hook, _ count: Int) {
        self.hook = hook
        self.count = count
    }

    /// Starts requests that cause the calls. Requests of the session to other paths cause none.
    func begin(in session: SessionManager, _ url: String) {
        session.adapter = self
        session.retrier = self
        if hook == .monitor { session.eventMonitors = [self] }
        if hook == .delegate {
            session.delegate.dataTaskDidReceiveResponse = { _, task, _ in
                if isBlocked(task.originalRequest) { block() }
                return .allow
            }
        }
        let queue = DispatchQueue(label: "handlers")
        for number in 0..<count { begin(in: session, url, path: "/blocked/\(number)", queue) }
    }

    private func begin(in session: SessionManager, _ url: String, path: String, _ queue: DispatchQueue) {
        switch hook {
        // The request fails without a transfer, because the scheme is not supported.
        case .adapter, .retrier:
            session.request("ftp://host\(path)").response(queue: queue) { _ in ended.record(true) }
        case .validator:
            session.request(url + path)
                .validate { _, _, _ in
                    block()
                    return .success
                }
                .response(queue: queue) { _ in ended.record(true) }
        case .monitor, .delegate:
            session.request(url + path).response(queue: queue) { _ in ended.record(true) }
        case .form:
            // The leak checker would report the body of an upload in progress, because `Data` keeps bits in its pointer.
            session.upload(multipartFormData: { _ in block() }, to: url, queue: queue) { result in
                guard case .success(let upload, _, _) = result else { return }
                upload.response(queue: queue) { _ in ended.record(true) }
            }
        }
    }

    /// Waits until some of the calls block a thread.
    func wait(until count: Int) async throws { try await blocked.wait { $0.count >= count } }

    /// The number of the calls that have blocked a thread.
    var blockedCount: Int { blocked.values.count }

    /// Lets all calls return, and waits for the ends of their requests or forms. Returns their number.
    func release() async throws -> Int {
        for _ in 0..<count { gate.open() }
        try await ended.wait { $0.count >= count }
        return ended.values.count
    }

    private func isBlocked(_ request: URLRequest?) -> Bool {
        request?.url?.path.hasPrefix("/blocked/") ?? false
    }

    private func block() {
        blocked.record(true)
        gate.wait()
    }
}

extension BlockedCalls: RequestAdapter, RequestRetrier, EventMonitor {
    /// Blocks in a retry. The adapter of a first attempt runs on the thread that creates the request.
    func adapt(_ urlRequest: URLRequest) -> URLRequest {
        if let url = urlRequest.url?.absoluteString, retried.values.contains(url) { block() }
        return urlRequest
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        if hook == .retrier { block() }
        let isRetried = hook == .adapter && request.retryCount == 0
        if isRetried, let url = request.request?.url?.absoluteString { retried.record(url) }
        completion(isRetried, 0)
    }

    func request(_ request: Request, willSend urlRequest: URLRequest) {
        if isBlocked(urlRequest) { block() }
    }
}
