internal import Dispatch
internal import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// A request that a ``SessionManager`` has made.
///
/// Every handler is called exactly once, whatever happens to the request or its session. All of a request's
/// functions may be called from any thread.
public class Request: SessionWork, @unchecked Sendable {
    // Unchecked only because subclasses exist: all that is stored is immutable and Sendable, and
    // subclasses, which only this module can make, store nothing else.

    let core: RequestCore

    init(_ core: RequestCore) {
        self.core = core
    }

    /// Its number in its session.
    var identifier: Int { core.identifier }

    // MARK: What can be seen

    /// The request as the last attempt began with it, adapted; `nil` when none could be made.
    public var request: URLRequest? { core.snapshot.now.request }

    /// The head of the final response, once it has come.
    public var response: HTTPURLResponse? { core.snapshot.now.head?.response }

    /// The request's work at this moment; `nil` when no request could be made.
    public var task: RequestTask? {
        request == nil ? nil : core.task
    }

    /// How often the request was tried again.
    public var retryCount: UInt { UInt(core.snapshot.now.retryCount) }

    /// What the last attempt cost, once it has ended.
    public var metrics: RequestMetrics? { core.snapshot.now.metrics?.value }

    // MARK: Control

    /// Starts the request, or continues it after ``suspend()``.
    ///
    /// Only needed then, or when the session's ``SessionManager/startRequestsImmediately`` is false.
    @discardableResult
    public func resume() -> Self {
        core.perform { $0.resume() }
        return self
    }

    /// Holds the request: what is under way is paused, and nothing new is begun until ``resume()``.
    ///
    /// The connection stays. While it is paused nothing counts as idle, but the time that the whole request
    /// may take goes on. What has come already is still handled.
    @discardableResult
    public func suspend() -> Self {
        core.perform { $0.suspend() }
        return self
    }

    /// Ends the request, unless it has ended: its handlers get `URLError.cancelled`. Returns at once.
    @discardableResult
    public func cancel() -> Self {
        core.perform { $0.cancel() }
        return self
    }

    // MARK: Credentials

    /// Answers a challenge for credentials with a user's name and password.
    ///
    /// The request is sent without them first. If the server challenges it (401), it is sent once more with
    /// the strongest scheme that both sides know: Negotiate, Digest, NTLM or Basic. Credentials that the
    /// server refuses make its second 401 the response. They are not sent to another origin that a redirect
    /// leads to.
    ///
    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The password.
    ///   - persistence: Without effect: the credentials serve this request only.
    @discardableResult
    public func authenticate(
        user: String,
        password: String,
        persistence: URLCredential.Persistence = .forSession
    ) -> Self {
        authenticate(
            usingCredential: URLCredential(user: user, password: password, persistence: persistence)
        )
    }

    /// Answers a challenge for credentials; see ``authenticate(user:password:persistence:)``.
    @discardableResult
    public func authenticate(usingCredential credential: URLCredential) -> Self {
        core.snapshot.change { $0.credential = credential }
        core.perform { core in
            withExtendedLifetime(self) { core.credentialCame() }
        }
        return self
    }

    // MARK: For the package

    /// Names who is offered the request if it fails, before the session's ``SessionManager/failedRequestOwner``, which
    /// is asked when this one declines. One that is named after the failure is offered it as long as no handler was
    /// called; while the session's has it in hand, when that declines. The one named last counts.
    @discardableResult
    package func offerFailure(to owner: any FailedRequestOwner) -> Self {
        core.perform { core in
            defer { withExtendedLifetime(self) {} }
            core.setOwner(owner)
        }
        return self
    }

    // MARK: For the module

    /// Calls `handler` once on the request's own serial queue, after those added before it.
    func whenFinished(_ handler: @escaping RequestCore.Handler) {
        core.performWithNext { $0.handle(.added(handler)) }
    }

    /// Adds a check of a whole response.
    func addValidator(
        _ validate: @escaping @Sendable (RequestOutcome, HTTPURLResponse) -> ValidationResult
    ) -> Self {
        core.performWithNext { core in
            // The last reference may be this chain of calls: see ``RequestCore/amend(with:)``.
            defer { withExtendedLifetime(self) {} }
            core.addValidator { outcome in
                guard let response = outcome.response,
                    case .failure(let error) = validate(outcome, response)
                else { return nil }
                return error
            }
        }
        return self
    }

    /// Starts the request if nobody has, and waits for its end. Cancelling the waiting task cancels it.
    ///
    /// - Parameter make: Makes what is waited for, on the request's queue: the one who waits may be the main
    ///   actor.
    func finished<Value>(_ make: @escaping @Sendable (RequestOutcome) -> Value) async -> sending Value {
        // Made there and given away there: nobody else has it.
        nonisolated(unsafe) let value = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                whenFinished { outcome in
                    nonisolated(unsafe) let value = make(outcome)
                    continuation.resume(returning: value)
                }
                // A request that was suspended stays suspended until the program resumes it.
                core.performWithNext { if $0.state.attempt == 0 { $0.resume() } }
            }
        } onCancel: {
            cancel()
        }
        return value
    }

    func sessionDropped() {
        core.perform { $0.handle(.interrupted(.sessionDropped)) }
    }

    /// Where handlers are called that name no queue.
    var completionQueue: DispatchQueue { core.context.hooks.completionQueue }
}
