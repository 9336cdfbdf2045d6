internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization

/// The adapter, retrier, interceptor, monitor and owner in the session of one seed. At random they fail, delay, answer
/// twice, or never answer. In each call the seed's ``CompletionProgram`` acts, too.
final class CompletionHooks: Sendable {
    private struct Refusal: Error {}

    /// What the program does in each call besides its answer.
    let program: CompletionProgram
    private let generator: SharedGenerator
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
        generator = SharedGenerator(seed: seed &* 17)
        let program = CompletionProgram(seed: seed)
        self.program = program
        let waits: [Duration?] = [nil, nil, .microseconds(1), .milliseconds(3)]
        offlineRetrier = OfflineRetrier(
            maximumWait: waits[Int(seed / 4 % 4)],
            maximumRetries: 8,
            pacing: Self.pacing
        ) { error in
            program.called(.offlineError, of: nil)
            return OfflineRetrier.isNotConnected(error)
        }
    }

    private func roll(_ sides: Int) -> Int { generator.roll(sides) }

    /// Returns the result of a custom evaluation, which is random for each call.
    func evaluate() -> Bool {
        program.called(.evaluation, of: nil)
        return roll(3) != 0
    }
}

extension CompletionHooks: RequestAdapter {
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        program.called(.adapter, of: CompletionProgram.number(in: urlRequest.url))
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
        program.called(.retrier, of: request)
        guard request.retryCount < 4 else { return completion(false, 0) }
        switch roll(7) {
        case 0, 1: retry(completion, after: 0)
        case 2:
            retry(completion, after: 0.002)
            completion(false, 0)
        case 3: DispatchQueue.global().async { self.retry(completion, after: 0) }
        case 4:
            let number = CompletionProgram.number(in: request.request?.url)
            program.retain(completion, of: number, isCancelled: roll(2) == 0)
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
        program.called(.interceptorAdapts, of: CompletionProgram.number(in: urlRequest.url))
        if roll(4) == 0 { try await Task.sleep(for: .microseconds(roll(2000))) }
        if roll(12) == 0 { throw Refusal() }
        return urlRequest
    }

    func retry(
        _ request: Request,
        for session: SessionManager,
        dueTo error: any Error
    ) async -> RetryResult {
        program.called(.interceptorRetries, of: request)
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
    func request(_ request: Request, willSend urlRequest: URLRequest) {
        program.called(.willSend, of: request)
    }

    func request(_ request: Request, didReceive response: HTTPURLResponse) {
        program.called(.didReceive, of: request)
    }

    func request(_ request: Request, willFollow response: HTTPURLResponse, to urlRequest: URLRequest) {
        program.called(.willFollow, of: request)
    }

    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?) {
        program.called(.didEndAttempt, of: request)
        guard let error else { return }
        if OfflineRetrier.isNotConnected(error) { offline.record(attempt) }
        if case .serverTrustEvaluationFailed = error as? AFError {
            refusals.wrappingAdd(1, ordering: .relaxed)
        }
    }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {
        program.called(.willRetry, of: request)
        if OfflineRetrier.isNotConnected(error) { retriesAfterOffline.wrappingAdd(1, ordering: .relaxed) }
    }

    func requestDidResume(_ request: Request) { program.called(.didResume, of: request) }

    func requestDidSuspend(_ request: Request) { program.called(.didSuspend, of: request) }

    func requestDidCancel(_ request: Request) { program.called(.didCancel, of: request) }

    func requestDidFinish(_ request: Request, error: (any Error)?) { program.called(.didFinish, of: request) }
}

extension CompletionHooks: FailedRequestOwner {
    /// At random, declines, answers immediately, later or twice, or never answers. Most calls also set a handler for
    /// the withdrawal.
    func offer(_ request: FailedRequest) {
        let number = CompletionProgram.number(in: request.original.url)
        program.called(.offer, of: number)
        let choice = roll(8)
        if choice > 0 {
            request.whenWithdrawn { _ in
                self.withdrawn.wrappingAdd(1, ordering: .relaxed)
                self.program.called(.withdrawal, of: number)
            }
        }
        switch choice {
        case 0, 1: break
        case 2: finish(request)
        case 3: request.fail(with: Refusal())
        case 4: program.retain(request, of: number, isCancelled: false)
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
