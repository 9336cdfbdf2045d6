internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Decides about redirects and challenges, by the delegate's closures or by default.

extension RequestCore {
    /// A snapshot of the request's state, readable from any thread.
    nonisolated var task: RequestTask {
        let now = snapshot.now
        return RequestTask(
            taskIdentifier: identifier,
            originalRequest: now.request,
            currentRequest: now.current,
            response: now.head?.response
        )
    }

    /// Returns the redirect to follow; `nil` if the response is not a redirect or must not be followed.
    func redirection(_ response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition? {
        guard plan.policy.followsRedirects,
            let redirection = try Redirection(
                of: hop.request,
                status: response.status,
                location: response.values(of: "Location").first
            ),
            let next = answer(to: redirection, response)
        else { return nil }
        current.redirects += 1
        guard current.redirects <= Redirection.limit else { throw URLError.tooManyRedirects }
        notifyMonitors { monitor, request in
            response.response.map { monitor.request(request, willFollow: $0, to: next) }
        }
        return .follow(
            next,
            .redirect(
                keepsBody: redirection.keepsBody,
                crossesOrigin: next.url?.hasSameOrigin(as: hop.url) != true
            )
        )
    }

    private func answer(to redirection: Redirection, _ response: ResponseHead) -> URLRequest? {
        guard let decide = context.delegate.taskWillPerformHTTPRedirection, let session = context.manager,
            let response = response.response
        else { return redirection.request }
        return decide(session, task, response, redirection.request)
    }

    /// Returns a body that can be sent. If the body is a stream that was already read, asks the delegate for a new
    /// stream. If there is none, returns the old stream, which makes the transfer fail.
    func renewed(_ upload: UploadBody?) -> UploadBody? {
        guard case .stream(let body) = upload, body.isConsumed, let session = context.manager,
            let stream = context.delegate.taskNeedNewBodyStream?(session, task)
        else { return upload }
        // `nonisolated(unsafe)` is safe: the delegate's closure gives the stream away and no longer uses it.
        nonisolated(unsafe) let owned = stream
        return .stream(StreamBody(owned))
    }

    /// Returns the next hop, which sends credentials, if the response is a 401 to a request without credentials.
    /// Returns `nil` for any other response, or if no credentials are available.
    ///
    /// The credentials are the request's own if they were set after the first transfer had started. Otherwise the
    /// delegate's closure supplies them. It is called at most once per attempt.
    func answerToChallenge(_ response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition? {
        guard response.status == 401, plan.policy.followsRedirects, !hop.isAuthenticated,
            !current.hasAnsweredChallenge,
            let challenge = AuthenticationChallenge(response)
        else { return nil }
        current.hasAnsweredChallenge = true
        guard let credential = try credential(for: challenge, hop),
            let credentials = TransferCredentials(credential, answering: response)
        else { return nil }
        return .follow(hop.request, .credential(credentials))
    }

    /// Returns the request's own credentials if they were set only after a 401 had been accepted as the response.
    func lateCredentials(for hop: Hop) -> TransferCredentials? {
        guard case .accept = hop.disposition, hop.failure == nil, hop.head?.status == 401,
            !hop.isAuthenticated,
            !hop.isCrossOrigin, plan.policy.followsRedirects
        else { return nil }
        return snapshot.now.credential.flatMap { TransferCredentials($0, answering: hop.head) }
    }

    private func credential(
        for challenge: AuthenticationChallenge,
        _ hop: Hop
    ) throws -> URLCredential? {
        if !hop.isCrossOrigin, let own = snapshot.now.credential { return own }
        guard let decide = context.delegate.taskDidReceiveChallenge, let session = context.manager else {
            return nil
        }
        let (disposition, credential) = decide(session, task, challenge)
        switch disposition {
        case .useCredential: return credential
        case .performDefaultHandling, .rejectProtectionSpace: return nil
        case .cancelAuthenticationChallenge: throw URLError(.cancelled)
        }
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

extension URLError {
    fileprivate static var tooManyRedirects: URLError {
        let words = "more than \(Redirection.limit) redirects"
        return URLError(.httpTooManyRedirects, userInfo: [NSLocalizedDescriptionKey: words])
    }
}

extension AuthenticationChallenge {
    /// Returns `nil` for a response without a `WWW-Authenticate` field.
    fileprivate init?(_ head: ResponseHead) {
        guard let host = head.url.host, let response = head.response,
            let challenge = head.values(of: "WWW-Authenticate").first
        else { return nil }
        let scheme = challenge.prefix { $0 != " " && $0 != "," }.lowercased()
        protectionSpace = URLProtectionSpace(
            host: host,
            port: head.url.port ?? (head.url.scheme == "https" ? 443 : 80),
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

extension RequestCore {
    /// Sends the request again if its response is a 401 and the credentials were set only after that response.
    func credentialsWereSet() {
        guard outcome.head?.status == 401, !current.isAuthenticated else { return }
        amend(with: .credential)
    }
}
