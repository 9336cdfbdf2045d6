internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// What is answered to redirects and challenges, by the delegate's closures or by ourselves.

extension RequestCore {
    /// What can be seen of the request at this moment.
    nonisolated var task: RequestTask {
        let now = snapshot.now
        return RequestTask(
            taskIdentifier: identifier,
            originalRequest: now.request,
            currentRequest: now.current,
            response: now.head?.response
        )
    }

    /// Where the response sends the request, or `nil` when it is to be taken as it is.
    func redirection(_ response: ResponseHead, _ hop: Hop) throws -> Hop.Fate? {
        guard plan.policy.followsRedirects,
            let redirection = try Redirection(
                of: hop.request,
                status: response.status,
                location: response.values(of: "Location").first
            ),
            let next = answer(to: redirection, response)
        else { return nil }
        redirects += 1
        guard redirects <= Redirection.limit else { throw URLError.tooManyRedirects }
        tell { monitor, request in
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

    /// A body that can be sent: a new stream in place of one that was read, if the delegate has one.
    func renewed(_ upload: UploadBody?) -> UploadBody? {
        guard case .stream(let body) = upload, body.isTaken, let session = context.manager,
            let stream = context.delegate.taskNeedNewBodyStream?(session, task)
        else { return upload }
        // Whoever gives a stream to a request gives it away.
        nonisolated(unsafe) let given = stream
        return .stream(OneTimeBody(given))
    }

    /// Answers a 401 of a request without credentials: with its own, if they came too late for the first
    /// transfer, or with the delegate's.
    func answerToChallenge(_ response: ResponseHead, _ hop: Hop) throws -> Hop.Fate? {
        guard response.status == 401, plan.policy.followsRedirects, !hop.isAuthenticated,
            !hasAnsweredChallenge,
            let challenge = AuthenticationChallenge(response)
        else { return nil }
        hasAnsweredChallenge = true
        guard let credential = try credential(for: challenge, hop),
            let credentials = TransferCredentials(credential, answering: response)
        else { return nil }
        return .follow(hop.request, .credential(credentials))
    }

    /// What answers a challenge that has become the response, because nobody had given it in time.
    func lateCredentials(for hop: Hop) -> TransferCredentials? {
        guard case .take = hop.fate, hop.failure == nil, hop.head?.status == 401, !hop.isAuthenticated,
            !hop.isForeign, plan.policy.followsRedirects
        else { return nil }
        return snapshot.now.credential.flatMap { TransferCredentials($0, answering: hop.head) }
    }

    private func credential(
        for challenge: AuthenticationChallenge,
        _ hop: Hop
    ) throws -> URLCredential? {
        if !hop.isForeign, let own = snapshot.now.credential { return own }
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
    /// `nil` for a credential that is no user with a password.
    ///
    /// - Parameter challenge: The response that has asked for it. One that asks for Basic needs not be asked
    ///   again, which saves a request.
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
    /// Whether no better scheme is offered. One whose name is in a realm is taken for one that is, which costs
    /// a request.
    fileprivate var asksForBasicOnly: Bool {
        let challenges = values(of: "WWW-Authenticate").map { $0.lowercased() }
        let others = ["digest", "negotiate", "ntlm"]
        return !challenges.isEmpty
            && challenges.allSatisfy { text in
                text.hasPrefix("basic") && !others.contains(where: text.contains)
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
    /// `nil` for a response that asks for no scheme.
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
            authenticationMethod: Self.methods[scheme] ?? NSURLAuthenticationMethodDefault
        )
        failureResponse = response
    }

    private static func realm(_ parameters: Substring) -> String? {
        MediaTypeParameters.split(String(parameters), at: ",").lazy
            .compactMap { MediaTypeParameters.value(of: "realm", in: ";" + $0) }
            .first
    }

    private static let methods = [
        "basic": NSURLAuthenticationMethodHTTPBasic, "digest": NSURLAuthenticationMethodHTTPDigest,
        "negotiate": NSURLAuthenticationMethodNegotiate, "ntlm": NSURLAuthenticationMethodNTLM,
    ]
}

extension RequestCore {
    /// The request was given credentials, by a call that the network may have overtaken.
    func credentialCame() {
        guard outcome.head?.status == 401, !isAuthenticated else { return }
        amend(with: .credential)
    }
}
