internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

// Decides what happens with the response of a hop. The delegate's closures decide immediately or later.

extension RequestCore {
    func decide(on response: ResponseHead, _ hop: Hop) {
        guard context.delegate.answersLater else {
            return decided(Result { try disposition(of: response, hop) }, hop)
        }
        current.beginDeciding()
        hop.control.hold(true)
        work = Task {
            let decision = await Self.result { try await self.laterDisposition(of: response, hop) }
            decided(decision, hop)
        }
    }

    private func decided(_ decision: Result<Hop.Disposition, any Error>, _ hop: Hop) {
        // The hop may have ended during the decision, because the request was cancelled or the transfer failed.
        guard current.hop?.id == hop.id else { return }
        // The task of this decision must not be cancelled by the end of the attempt, which may follow below.
        work = nil
        switch decision {
        case .success(let disposition): current.decide(disposition)
        case .failure(let error): abandonHop(error)
        }
        guard let events = current.endDeciding() else { return }
        hop.control.hold(false)
        for event in events where current.hop?.id == hop.id { received(event) }
    }

    private func disposition(of response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition {
        if let redirection = try redirection(of: response, hop), let next = answer(to: redirection, response)
        {
            return try follow(next, redirection, response, hop)
        }
        let disposition = try reception(of: response, hop)
        if case .accept = disposition { try ask(response).check() }
        return disposition
    }

    /// Like ``disposition(of:_:)``, but waits for the answers of the closures with a completion.
    private func laterDisposition(of response: ResponseHead, _ hop: Hop) async throws -> Hop.Disposition {
        if let redirection = try redirection(of: response, hop) {
            let next = await laterAnswer(to: redirection, response)
            try checkIsCurrent(hop)
            if let next { return try follow(next, redirection, response, hop) }
        }
        let disposition = try reception(of: response, hop)
        if case .accept = disposition {
            try await askLater(response).check()
            try checkIsCurrent(hop)
        }
        return disposition
    }

    private func checkIsCurrent(_ hop: Hop) throws {
        guard current.hop?.id == hop.id, !Task.isCancelled else { throw CancellationError() }
    }

    /// Returns whether the response is received, or another request must be sent instead.
    private func reception(of response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition {
        if let next = try answerToChallenge(response, hop) { return next }
        switch try sink.begin(response) {
        case .sendAgain: return .follow(hop.request, .withoutRange)
        case .accept: break
        }
        outcome.head = response
        outcome.clock.responseBegan()
        snapshot.change { $0.head = response }
        return .accept
    }

    // MARK: The delegate's answers

    private func answer(to redirection: Redirection, _ response: ResponseHead) -> URLRequest? {
        guard let decide = context.delegate.taskWillPerformHTTPRedirection, let session = context.manager,
            let response = response.response
        else { return redirection.request }
        return decide(session, task, response, redirection.request)
    }

    private func laterAnswer(to redirection: Redirection, _ response: ResponseHead) async -> URLRequest? {
        guard let decide = context.delegate.taskWillPerformHTTPRedirectionWithCompletion,
            let session = context.manager, let head = response.response
        else { return answer(to: redirection, response) }
        let task = task
        return await answer(default: redirection.request) {
            decide(session, task, head, redirection.request, $0)
        }
    }

    private func ask(_ response: ResponseHead) -> ResponseDisposition {
        guard let decide = context.delegate.dataTaskDidReceiveResponse, let session = context.manager,
            let response = response.response
        else { return .allow }
        return decide(session, task, response)
    }

    private func askLater(_ response: ResponseHead) async -> ResponseDisposition {
        guard let decide = context.delegate.dataTaskDidReceiveResponseWithCompletion,
            let session = context.manager, let head = response.response
        else { return ask(response) }
        let task = task
        return await answer(default: .allow) { decide(session, task, head, $0) }
    }

    /// Calls the program's code with a completion, and waits for the answer. Returns the default if the request's task
    /// is cancelled meanwhile. A completion that the program keeps then retains nothing of the request.
    private func answer<Value: Sendable>(
        default standard: Value,
        _ ask: (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let (answers, continuation) = AsyncStream.makeStream(of: Value.self)
        ask(DelayedAnswer(default: standard) { continuation.yield($0) }.give)
        for await answer in answers { return answer }
        return standard
    }
}

extension ResponseDisposition {
    fileprivate func check() throws {
        if case .cancel = self { throw URLError.requestCancelled }
    }
}

// Reads the challenge of a response, and the credentials that answer it.

extension AuthenticationChallenge {
    /// Returns `nil` for a response without a `WWW-Authenticate` field.
    init?(_ head: ResponseHead) {
        guard let host = head.url.host, let port = head.url.effectivePort, let response = head.response,
            let challenge = head.values(of: "WWW-Authenticate").first
        else { return nil }
        let scheme = challenge.prefix { $0 != " " && $0 != "," }.lowercased()
        protectionSpace = URLProtectionSpace(
            host: host,
            port: port,
            protocol: head.url.scheme,
            realm: Self.realm(challenge.dropFirst(scheme.count)),
            authenticationMethod: AuthenticationScheme(rawValue: scheme)?.foundationName
                ?? NSURLAuthenticationMethodDefault
        )
        failureResponse = response
    }

    private static func realm(_ parameters: Substring) -> String? {
        MediaTypeParameters.split(String(parameters), at: ",").lazy
            .compactMap { MediaTypeParameters.value(of: "realm", in: ";" + $0) }
            .first
    }
}

extension TransferCredentials {
    /// Returns `nil` for a credential without a user name and password.
    ///
    /// - Parameter challenge: The response that asks for credentials. If it offers only Basic, the next request sends
    ///   the credentials without waiting for another challenge, which saves a request.
    init?(_ credential: URLCredential, answering challenge: ResponseHead? = nil) {
        guard let user = credential.user, let password = credential.password else { return nil }
        guard let challenge, challenge.asksForBasicOnly else {
            self.init(user: user, password: password)
            return
        }
        self.init(user: user, password: password, schemes: .basic, isPreemptive: true)
    }
}

extension ResponseHead {
    /// Whether the response offers only Basic. A realm that contains the name of another scheme is mistaken for an
    /// offer of that scheme. The mistake costs one more request.
    fileprivate var asksForBasicOnly: Bool {
        let challenges = values(of: "WWW-Authenticate").map { $0.lowercased() }
        let others = AuthenticationScheme.allCases.filter { $0 != .basic }
        return !challenges.isEmpty
            && challenges.allSatisfy { text in
                text.hasPrefix("basic") && !others.contains { text.contains($0.rawValue) }
            }
    }
}

/// The answer that the program's code gives by calling a completion closure.
///
/// The first call is the answer; later calls are ignored. If the program releases the closure without calling it, a
/// default is the answer, so that the request ends anyway.
final class DelayedAnswer<Value: Sendable>: Sendable {
    private let receiver: Lock<(@Sendable (Value) -> Void)?>
    private let standard: Value

    /// - Parameters:
    ///   - standard: The answer if the program gives none.
    ///   - receiver: Receives the answer. Called once, on any thread.
    init(default standard: Value, _ receiver: @escaping @Sendable (Value) -> Void) {
        self.standard = standard
        self.receiver = Lock(receiver)
    }

    deinit { give(standard) }

    func give(_ value: Value) {
        let receiver = receiver.withLock { receiver in
            defer { receiver = nil }
            return receiver
        }
        receiver?(value)
    }
}
