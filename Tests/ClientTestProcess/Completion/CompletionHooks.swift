internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization

/// The adapter, retrier, interceptor, monitor and owner in the session of one seed. At random they fail, delay, answer
/// twice, or never answer.
final class CompletionHooks: Sendable {
    private struct Refusal: Error {}

    private let generator: Mutex<SeededGenerator>
    /// The completions and failed requests that are retained without an answer; `nil` after ``forget()``, when nothing
    /// is retained any more.
    private let held = Mutex<[any Sendable]?>([])
    /// The number of retries that this retrier has granted.
    let retries = Atomic(0)
    /// The number of failed requests that this owner has finished, and the number of those withdrawn from it.
    let finished = Atomic(0)
    let withdrawn = Atomic(0)
    /// The numbers of the attempts that failed because there was no network.
    let offline = Recorder<Int>()
    /// The number of retries after ``offline`` failures, and the number of attempts that ended because the server was
    /// not trusted.
    let retriesAfterOffline = Atomic(0)
    let refusals = Atomic(0)
    private let offlineRetrier: OfflineRetrier

    /// A fast pacing, because a seed takes only milliseconds.
    static let pacing = RetryPacing(
        atOnce: 2,
        interval: .microseconds(200),
        firstDelay: .milliseconds(1),
        longestDelay: .milliseconds(4)
    )

    init(seed: UInt64) {
        generator = Mutex(SeededGenerator(seed: seed &* 17))
        let waits: [Duration?] = [nil, nil, .microseconds(1), .milliseconds(3)]
        offlineRetrier = OfflineRetrier(
            maximumWait: waits[Int(seed / 4 % 4)],
            maximumRetries: 8,
            pacing: Self.pacing
        )
    }

    private func roll(_ sides: Int) -> Int {
        generator.withLock { Int.random(in: 0..<sides, using: &$0) }
    }

    /// The result of a custom evaluation, which is random for each call.
    var trusts: Bool { roll(3) != 0 }

    /// Releases everything that is retained, and retains nothing from now on.
    func forget() {
        let forgotten = held.withLock { held in
            defer { held = nil }
            return held
        }
        withExtendedLifetime(forgotten) {}
    }
}

extension CompletionHooks: RequestAdapter {
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        if roll(12) == 0 { throw Refusal() }
        return urlRequest
    }
}

extension CompletionHooks: RequestRetrier {
    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        guard request.retryCount < 4 else { return completion(false, 0) }
        switch roll(7) {
        case 0, 1: retry(completion, after: 0)
        case 2:
            retry(completion, after: 0.002)
            completion(false, 0)
        case 3: DispatchQueue.global().async { self.retry(completion, after: 0) }
        case 4: held.withLock { $0?.append(completion) }
        case 5: break
        default: completion(false, 0)
        }
    }

    private func retry(_ completion: RequestRetryCompletion, after delay: TimeInterval) {
        retries.wrappingAdd(1, ordering: .relaxed)
        completion(true, delay)
    }
}

extension CompletionHooks: RequestInterceptor {
    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
        if roll(4) == 0 { try await Task.sleep(for: .microseconds(roll(2000))) }
        if roll(12) == 0 { throw Refusal() }
        return urlRequest
    }

    func retry(
        _ request: Request,
        for session: SessionManager,
        dueTo error: any Error
    ) async -> RetryResult {
        guard request.retryCount < 4 else { return .doNotRetry }
        switch roll(5) {
        case 0: return .doNotRetryWithError(Refusal())
        case 1: return .retryWithDelay(0.001)
        case 2: return .retry
        default: return await offlineRetrier.retry(request, for: session, dueTo: error)
        }
    }
}

extension CompletionHooks: EventMonitor {
    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?) {
        guard let error else { return }
        if OfflineRetrier.isNotConnected(error) { offline.record(attempt) }
        if case .serverTrustEvaluationFailed = error as? AFError {
            refusals.wrappingAdd(1, ordering: .relaxed)
        }
    }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
        if OfflineRetrier.isNotConnected(error) { retriesAfterOffline.wrappingAdd(1, ordering: .relaxed) }
    }
}

extension CompletionHooks: FailedRequestOwner {
    /// At random, declines, answers immediately, later or twice, or never answers. Most calls also set a handler for
    /// the withdrawal.
    func offer(_ request: FailedRequest) {
        let choice = roll(8)
        if choice > 0 { request.whenWithdrawn { _ in self.withdrawn.wrappingAdd(1, ordering: .relaxed) } }
        switch choice {
        case 0, 1: break
        case 2: finish(request)
        case 3: request.fail(with: Refusal())
        case 4: held.withLock { $0?.append(request) }
        case 5:
            finish(request)
            request.fail(with: Refusal())
        default:
            let delay = Double(roll(3)) / 1000
            DispatchQueue.global().asyncAfter(deadline: .now() + delay) { self.finish(request) }
        }
    }

    private func finish(_ request: FailedRequest) {
        guard let url = request.original.url else { return request.fail(with: Refusal()) }
        finished.wrappingAdd(1, ordering: .relaxed)
        let head = TransferHead(status: 200, version: "HTTP/1.1", headers: [])
        request.finish(with: OwnerResponse(url: url, head: head, body: Data("from elsewhere".utf8)))
    }
}
