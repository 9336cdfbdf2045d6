internal import Dispatch
internal import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// A request created by a ``SessionManager``.
///
/// Every handler is called exactly once, even if the request is cancelled or its session is dropped. All
/// functions of a request may be called from any thread.
public class Request: SessionTask, @unchecked Sendable {
    // Unchecked only because there are subclasses. All stored properties are immutable and Sendable. Only this
    // module can subclass it, and its subclasses store nothing else.

    let core: RequestCore

    init(_ core: RequestCore) {
        self.core = core
    }

    /// The request's number in its session.
    var identifier: Int { core.identifier }

    // MARK: State

    /// The adapted request that the last attempt began with; `nil` if creating it failed.
    public var request: URLRequest? { core.snapshot.now.request }

    /// The head of the final response, once it has been received.
    public var response: HTTPURLResponse? { core.snapshot.now.head?.response }

    /// A snapshot of the request's progress; `nil` if creating the request failed.
    public var task: RequestTask? {
        request == nil ? nil : core.task
    }

    /// The number of retries.
    public var retryCount: UInt { UInt(core.snapshot.now.retryCount) }

    /// The metrics of the last attempt, once it has ended.
    public var metrics: RequestMetrics? { core.snapshot.now.metrics?.value }

    // MARK: Control

    /// Starts the request, or continues it after ``suspend()``.
    ///
    /// Only needed after ``suspend()``, or when the session's ``SessionManager/startRequestsImmediately`` is
    /// false.
    @discardableResult
    public func resume() -> Self {
        core.perform { $0.resume() }
        return self
    }

    /// Suspends the request: pauses the current transfer, and starts no other until ``resume()``.
    ///
    /// The connection stays open. The idle timeout does not run while the request is suspended, but the total
    /// timeout does. Data already received is still processed.
    @discardableResult
    public func suspend() -> Self {
        core.perform { $0.suspend() }
        return self
    }

    /// Cancels the request. Its handlers receive `URLError.cancelled`. Does nothing if the request has
    /// finished. Returns immediately.
    @discardableResult
    public func cancel() -> Self {
        core.perform { $0.cancel() }
        return self
    }

    // MARK: Credentials

    /// Sets the user name and password that answer an authentication challenge.
    ///
    /// The request is first sent without them. If the server answers 401, it is sent again with the strongest
    /// scheme that both sides support: Negotiate, Digest, NTLM or Basic. If the server rejects the credentials,
    /// its second 401 becomes the response. Credentials are not sent to another origin after a redirect.
    ///
    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The password.
    ///   - persistence: Ignored: the credentials are used for this request only.
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

    /// Sets the credentials that answer an authentication challenge; see
    /// ``authenticate(user:password:persistence:)``.
    @discardableResult
    public func authenticate(usingCredential credential: URLCredential) -> Self {
        core.snapshot.change { $0.credential = credential }
        core.perform { core in
            withExtendedLifetime(self) { core.credentialsWereSet() }
        }
        return self
    }

    /// Returns the header field for Basic authentication (RFC 7617), with user and password in UTF-8.
    ///
    /// The field reveals the password to everyone who can read it, so send it over `https` only.
    ///
    /// - Parameters:
    ///   - user: The user. It must not contain a colon, because the password begins after the first colon.
    ///   - password: The password.
    /// - Returns: The field, or `nil` if the user contains a colon or either text contains a control character
    ///   (RFC 7617 §2).
    public static func authorizationHeader(
        user: String,
        password: String
    ) -> (key: String, value: String)? {
        let credentials = "\(user):\(password)"
        guard !user.utf8.contains(UInt8(ascii: ":")),
            credentials.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        return ("Authorization", "Basic \(Data(credentials.utf8).base64EncodedString())")
    }

    // MARK: Package interface

    /// Sets the owner that is offered the request if it fails. It is asked before the session's
    /// ``SessionManager/failedRequestOwner``, which is asked only if this owner declines.
    ///
    /// An owner may also be set after the failure, as long as no handler has been called. If the session's
    /// owner already has the request, the new owner is asked when that one declines. A later call replaces the
    /// owner.
    @discardableResult
    package func offerFailure(to owner: any FailedRequestOwner) -> Self {
        core.perform { core in
            defer { withExtendedLifetime(self) {} }
            core.setOwner(owner)
        }
        return self
    }

    // MARK: Module interface

    /// Calls `handler` once on the request's own serial queue, after the handlers added before it.
    func whenFinished(_ handler: @escaping RequestCore.Handler) {
        core.performDeferred { $0.handle(.added(handler)) }
    }

    /// Adds a check of a complete response.
    func addValidator(
        _ validate: @escaping @Sendable (RequestOutcome, HTTPURLResponse) -> ValidationResult
    ) -> Self {
        core.performDeferred { core in
            // The call chain may hold the last reference: see ``RequestCore/amend(with:)``.
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

    /// Waits for the request's end. Starts it if it has not been started. Cancelling the waiting task cancels
    /// the request.
    ///
    /// - Parameter make: Creates the result on the request's queue, because the caller may be on the main
    ///   actor.
    func finished<Value>(_ make: @escaping @Sendable (RequestOutcome) -> Value) async -> sending Value {
        // Safe: the value is created on the request's queue, and only the caller receives it.
        nonisolated(unsafe) let value = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                whenFinished { outcome in
                    nonisolated(unsafe) let value = make(outcome)
                    continuation.resume(returning: value)
                }
                // A request that was suspended stays suspended until the program resumes it.
                core.performDeferred { if $0.state.attempt == 0 { $0.resume() } }
            }
        } onCancel: {
            cancel()
        }
        return value
    }

    func sessionDropped() {
        core.perform { $0.handle(.interrupted(.sessionDropped)) }
    }

    /// The queue for handlers that are added without one.
    var completionQueue: DispatchQueue { core.context.hooks.completionQueue }
}

extension Request {
    /// The result of validating a response.
    public enum ValidationResult: Sendable {
        /// The response is acceptable.
        case success
        /// The response is not acceptable. The error becomes the request's error.
        case failure(any Error)
    }
}
