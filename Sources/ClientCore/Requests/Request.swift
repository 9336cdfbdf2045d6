internal import Dispatch
internal import Foundation
public import FoundationNetworking
internal import NetwatchTransport
internal import Synchronization

/// A request that a ``SessionManager`` has made. It is under way already.
///
/// Every handler is called exactly once, whatever happens to the request or its session. All of a
/// request's functions may be called from any thread.
public class Request: @unchecked Sendable {
    // Unchecked only because subclasses exist: all that is stored is immutable and Sendable, and
    // subclasses, which only this module can make, store nothing.

    typealias Handler = @Sendable (RequestOutcome) -> Void

    /// What ``RequestState`` came to, in Foundation's words.
    struct RequestOutcome: Sendable {
        let request: URLRequest?
        let response: HTTPURLResponse?
        let data: Data?
        let error: (any Error)?
    }

    private typealias State = RequestState<Handler>

    /// The request as it is sent, or `nil` when none could be made.
    public let request: URLRequest?

    private let engine: TransferEngine
    private let didFinish: @Sendable () -> Void
    private let state = Mutex(State())
    /// Where responses are put together, so that neither the engine's thread nor the caller's does it.
    private let serialization = DispatchQueue(label: "netwatch.request", target: .global(qos: .utility))

    /// - Parameter didFinish: Called once, on any thread, when the request has ended.
    init(
        _ request: Result<URLRequest, any Error>,
        engine: TransferEngine,
        didFinish: @escaping @Sendable () -> Void
    ) {
        self.request = request.value
        self.engine = engine
        self.didFinish = didFinish
    }

    /// The head of the response, once it has come.
    public var response: HTTPURLResponse? {
        let head = state.withLock { $0.outcome.head }
        return head.flatMap { HTTPURLResponse($0, url: request?.url) }
    }

    /// Ends the request, unless it has ended: its handlers get `URLError.cancelled`. Returns at once.
    public func cancel() {
        handle(.cancelled)
    }

    // MARK: For the session

    func start(_ transfer: Result<TransferRequest, any Error>) {
        switch transfer {
        case .failure(let error):
            handle(.refused(error))
        case .success(let transfer):
            // The engine keeps the request until its end, so nobody else needs to.
            handle(.started(engine.start(transfer) { self.handle($0) }))
        }
    }

    func sessionDropped() {
        handle(.sessionDropped)
    }

    // MARK: Handlers

    /// Calls `handler` once on the request's own serial queue, after those added before it.
    func whenFinished(_ handler: @escaping Handler) {
        handle(.added(handler))
    }

    private func handle(_ event: TransferEvent) {
        switch event {
        case .head(let head): handle(State.Event.head(head))
        case .body(let bytes): handle(State.Event.body(bytes))
        case .progress: break
        case .end(let end): handle(.ended(end.failure))
        }
    }

    private func handle(_ event: State.Event) {
        let (actions, hasFinished) = state.withLock { state in
            let wasFinished = state.isFinished
            let actions = state.handle(event)
            // Under the lock, which is what keeps handlers in order; neither action runs code of others.
            for action in actions { perform(action) }
            return (actions, state.isFinished && !wasFinished)
        }
        // Handlers are released outside the lock: what they hold may come back here as it goes.
        withExtendedLifetime(actions) {}
        if hasFinished { didFinish() }
    }

    private func perform(_ action: State.Action) {
        switch action {
        case .cancelTransfer(let id):
            engine.cancel(id)
        case .run(let handler, let outcome):
            serialization.async { handler(self.translate(outcome)) }
        }
    }

    private func translate(_ outcome: State.Outcome) -> RequestOutcome {
        RequestOutcome(
            request: request,
            response: outcome.head.flatMap { HTTPURLResponse($0, url: request?.url) },
            data: outcome.wasSent ? Data(outcome.body) : nil,
            error: outcome.failure.map(error)
        )
    }

    private func error(_ failure: State.Outcome.Failure) -> any Error {
        switch failure {
        case .refused(let error): error
        case .failed(let failure): failure.error(for: request?.url)
        case .cancelled(let failure): URLError.cancelled(after: failure, url: request?.url)
        case .sessionDropped: AFError.sessionDeinitialized
        }
    }
}

extension URLError {
    /// The error of a cancelled request, however its transfer ended in the meantime.
    fileprivate static func cancelled(after failure: TransferFailure?, url: URL?) -> any Error {
        let cancelled: Int32 = 42
        guard let failure, failure.code == cancelled else { return URLError(.cancelled) }
        return failure.error(for: url)
    }
}

extension HTTPURLResponse {
    /// Fields of the same name, however written, become one, joined as RFC 9110 §5.3 says.
    fileprivate convenience init?(_ head: TransferHead, url: URL?) {
        guard let url else { return nil }
        var fields: [String: String] = [:]
        var names: [String: String] = [:]
        for header in head.headers {
            let name = names[header.name.lowercased(), default: header.name]
            names[header.name.lowercased()] = name
            fields[name] = fields[name].map { "\($0), \(header.value)" } ?? header.value
        }
        self.init(url: url, statusCode: head.status, httpVersion: head.version, headerFields: fields)
    }
}
