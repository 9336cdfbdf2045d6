package import Dispatch
internal import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// A request created by a ``SessionManager``.
///
/// Every handler is called exactly once, even if the request is cancelled or its session is released. All functions
/// of a request may be called from any thread.
public class Request: SessionTask, @unchecked Sendable {
    // `@unchecked` is needed only because there are subclasses. All stored properties are immutable and Sendable. Only
    // this module can subclass `Request`, and its subclasses add no stored properties.

    let core: RequestCore

    init(_ core: RequestCore) {
        self.core = core
    }

    /// The request's number in its session.
    var identifier: Int { core.identifier }

    // MARK: State

    /// What the request does at the moment. It changes before the request's handlers are called.
    public var state: State { core.snapshot.now.state }

    /// The request that the last attempt began with, after adapters have changed it. If the adapter threw in the first
    /// attempt, the request as it was created; `nil` if it could not be created.
    public var request: URLRequest? { core.snapshot.now.request }

    /// The head of the final response; `nil` until it has arrived.
    public var response: HTTPURLResponse? { core.snapshot.now.head?.response }

    /// A snapshot of the request's state: its number, the request that was sent last, and the response. `nil` if the
    /// request could not be created.
    public var task: RequestTask? {
        request == nil ? nil : core.task
    }

    /// The number of retries so far.
    public var retryCount: UInt { UInt(core.snapshot.now.retryCount) }

    /// The metrics of the last attempt; `nil` until it has ended.
    public var metrics: RequestMetrics? { core.snapshot.now.metrics?.value }

    // MARK: Control

    /// Starts the request, or continues it after ``suspend()``.
    ///
    /// Call this function only after ``suspend()``, or if the session's ``SessionManager/startRequestsImmediately`` is
    /// false. Otherwise the request starts by itself.
    @discardableResult
    public func resume() -> Self {
        core.perform { $0.resume() }
        return self
    }

    /// Suspends the request: pauses the current transfer, and starts no other transfer until ``resume()``.
    ///
    /// The connection stays open, and data that has already arrived is still processed. While the request is
    /// suspended, the total timeout runs, but the idle timeout does not.
    @discardableResult
    public func suspend() -> Self {
        core.perform { $0.suspend() }
        return self
    }

    /// Cancels the request. Its handlers receive `URLError.cancelled`. Returns immediately, and does nothing if the
    /// request has finished.
    @discardableResult
    public func cancel() -> Self {
        core.perform { $0.cancel() }
        return self
    }

    // MARK: Credentials

    /// Sets the user name and password that answer an authentication challenge.
    ///
    /// The request is first sent without credentials. If the response is a 401, the request is sent again with the
    /// strongest scheme that both sides support: Negotiate, Digest, NTLM or Basic, in this order. If the server
    /// rejects the credentials, its second 401 becomes the response. After a redirect to another origin, the
    /// credentials are not sent.
    ///
    /// ```swift
    /// let response = await session.request("https://example.com/private")
    ///     .authenticate(user: "ada", password: "secret")
    ///     .responseString()
    /// print(response.result)
    /// ```
    ///
    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The password.
    ///   - persistence: Ignored, because the credentials are used for this request only.
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
    /// The field contains the password, only encoded as Base64. Send it over `https` only.
    ///
    /// - Parameters:
    ///   - user: The user name. It must not contain a colon, because the password begins after the first colon.
    ///   - password: The password.
    /// - Returns: The name and the value of the field; `nil` if `user` contains a colon, or if `user` or `password`
    ///   contains a control character (RFC 7617 §2).
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

    /// Sets the owner that the request is offered to if it fails. The session's owner,
    /// ``SessionManager/failedRequestOwner``, is offered the failure only if the request's own owner declines. A later
    /// call replaces the owner. If the owner can never store the request, the request fails immediately; see
    /// ``FailedRequestOwner/refusal(of:hasCredential:)``.
    ///
    /// The owner may also be set after the failure, as long as no handler has been called. If the session's owner is
    /// deciding at that time, the new owner is offered the failure only after the session's owner has declined.
    @discardableResult
    package func offerFailure(to owner: any FailedRequestOwner) -> Self {
        core.perform { core in
            defer { withExtendedLifetime(self) {} }
            core.setOwner(owner)
        }
        return self
    }

    /// Calls `handler` on the request's own queue when an owner reports that it has stored the request; see
    /// ``FailedRequest/reportQueued(_:abandonedWith:)``. The handler is called at most once, and immediately if the
    /// request is already stored.
    @discardableResult
    package func whenQueued(_ handler: @escaping @Sendable (any Sendable) -> Void) -> Self {
        core.performDeferred { core in
            defer { withExtendedLifetime(self) {} }
            core.addQueuedHandler(handler)
        }
        return self
    }

    /// The reason why the owner that was offered the request could not store it; `nil` if it has stored the request, or
    /// was not asked. It changes before the request's handlers are called.
    package var ownerRefusal: (any Error)? { core.snapshot.now.ownerRefusal }

    // MARK: Module interface

    /// Adds a handler, which is called once on the request's own serial queue, after the handlers added before it.
    func whenFinished(_ handler: @escaping @Sendable (RequestOutcome) -> Void) {
        core.add(handler)
    }

    /// Adds a validator, which checks the response once it is complete.
    func addValidator(
        _ validate: @escaping @Sendable (RequestOutcome, HTTPURLResponse) -> ValidationResult
    ) -> Self {
        core.performDeferred { core in
            // The chain of calls may hold the last reference to this request; see ``RequestCore/amend(with:)``.
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

    /// Waits until the request has finished. Starts the request if it has not been started. Cancelling the waiting
    /// task cancels the request.
    ///
    /// - Parameter make: Creates the result on the request's queue, because the caller may be on the main
    ///   actor.
    func finished<Value>(_ make: @escaping @Sendable (RequestOutcome) -> Value) async -> sending Value {
        // `nonisolated(unsafe)` is safe: the value is created on the request's queue, and only the caller receives it.
        nonisolated(unsafe) let value = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                whenFinished { outcome in
                    nonisolated(unsafe) let value = make(outcome)
                    continuation.resume(returning: value)
                }
                // Starts only a request that was never started. A suspended one waits for the program's `resume()`.
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
    package var completionQueue: DispatchQueue { core.context.completionQueue }
}

extension Request {
    /// The states of a request.
    public enum State: Sendable {
        /// It has not been started.
        case initialized
        /// It is being sent, or it waits for the next attempt.
        case resumed
        /// ``Request/suspend()`` was called.
        case suspended
        /// A queue has stored it and will send it later.
        case queued
        /// ``Request/cancel()`` was called. The request's handlers may still have to be called.
        case cancelled
        /// It has finished without being cancelled.
        case finished
    }

    /// The result of validating a response.
    public enum ValidationResult: Sendable {
        /// The response is acceptable.
        case success
        /// The response is not acceptable. The request fails with the error.
        case failure(any Error)
    }
}

extension Request: CustomStringConvertible {
    /// The method, the URL and the status, for example `GET https://example.com/ (200)`. The status is missing until
    /// there is a response. The text is empty if creating the request failed. It contains neither a user name and
    /// password nor query values that may be secrets.
    public var description: String {
        guard let request, let url = request.url else { return "" }
        let status = response.map { " (\($0.statusCode))" } ?? ""
        return "\(request.httpMethod ?? "GET") \(url.textWithoutSecrets)\(status)"
    }
}

extension Request: CustomDebugStringConvertible {
    /// The request as a curl(1) command, including all secrets; see ``cURLDescription(redactingSecrets:)``.
    public var debugDescription: String { cURLDescription() }

    /// Returns the request as a curl(1) command for any POSIX shell, after the prompt `$ `. The command includes the
    /// session's header fields, credentials, cookies, and as much of the body as a command line can hold.
    ///
    /// - Parameter redactingSecrets: Whether secrets are replaced by `REDACTED`: credentials, cookies, and values
    ///   whose names suggest a secret. Default: false.
    public func cURLDescription(redactingSecrets: Bool = false) -> String {
        let now = core.snapshot.now
        let settings = core.context.settings
        var command = CurlCommand(now.request, body: core.plan.upload.map(CurlCommand.Body.init))
        command.sessionHeaders = settings.headers
        command.credential = now.credential.flatMap { credential in
            credential.user.map { (user: $0, password: credential.password ?? "") }
        }
        command.cookies = now.request.flatMap(settings.cookieField)
        return command.text(redactingSecrets: redactingSecrets)
    }
}

extension CurlCommand.Body {
    fileprivate init(_ upload: UploadBody) {
        self =
            switch upload {
            case .data(let data): .data(data)
            case .file(let url, _): .file(path: url.path)
            case .stream, .replayable: .stream
            }
    }
}

/// A snapshot of a request: its number, its state, what was sent, and the response.
public struct RequestTask: Sendable {
    /// The request's number, unique in its session. Requests created later have higher numbers.
    public let taskIdentifier: Int
    /// The state of the request in URLSession's terms; see ``Request/state-swift.property`` for netwatch's own.
    public let state: URLSessionTask.State
    /// The request that the attempt began with, after adapters have changed it.
    public let originalRequest: URLRequest?
    /// The request that was sent last. It differs from ``originalRequest`` after a redirect.
    public let currentRequest: URLRequest?
    /// The head of the final response, an `HTTPURLResponse`; `nil` until it has arrived.
    public let response: URLResponse?
}

extension RequestTask: CustomStringConvertible {
    /// The request's number, its method, and its URL without secrets, for example `1: GET https://example.com/`.
    public var description: String {
        "\(taskIdentifier): \((currentRequest ?? originalRequest)?.methodAndURL ?? "no request")"
    }
}

extension URLSessionTask.State {
    /// A request that was not started counts as suspended, and one that a queue has stored as running.
    init(_ state: Request.State) {
        self =
            switch state {
            case .initialized, .suspended: .suspended
            case .resumed, .queued: .running
            case .cancelled: .canceling
            case .finished: .completed
            }
    }
}
