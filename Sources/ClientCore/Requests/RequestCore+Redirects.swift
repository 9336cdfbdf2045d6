internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Redirects and challenges, and what answers them.

extension RequestCore {
    /// Returns the redirect; `nil` if the response is not a redirect or must not be followed.
    func redirection(of response: ResponseHead, _ hop: Hop) throws -> Redirection? {
        // The location is searched only in redirects.
        guard plan.policy.followsRedirects, Redirection.isFollowed(response.status) else { return nil }
        return try Redirection(
            of: hop.request,
            sentAs: hop.sentText,
            status: response.status,
            location: response.head.fields.exactValues(of: "Location").first
        )
    }

    /// Returns the redirect as a decision.
    ///
    /// - Parameter next: The request that the delegate has chosen.
    /// - Throws: `URLError.httpTooManyRedirects` or ``AFError/redirectRefused(reason:)``.
    func follow(
        _ next: URLRequest,
        _ redirection: Redirection,
        _ response: ResponseHead,
        _ hop: Hop
    ) throws -> Hop.Disposition {
        try current.countRedirect()
        if let target = next.url, let reason = refusal(ofSending: next, to: target, redirection, after: hop) {
            throw AFError.redirectRefused(reason: reason)
        }
        notifyMonitors { monitor, request in
            response.response.map { monitor.request(request, willFollow: $0, to: next) }
        }
        return .follow(
            next,
            .redirect(
                keepsBody: redirection.keepsBody,
                crossesOrigin: next.url?.hasSameOrigin(as: hop.url) != true,
                // The delegate may have changed the URL.
                sentText: next.url == redirection.request.url ? redirection.sentText : nil
            )
        )
    }

    /// Returns why the redirect must not be followed; `nil` if it may.
    private func refusal(
        ofSending next: URLRequest,
        to target: URL,
        _ redirection: Redirection,
        after hop: Hop
    ) -> AFError.RedirectRefusalReason? {
        let permitted = options.redirects ?? []
        let source = hop.url.withoutUserInfo ?? hop.url
        let isEvaluated = hop.trustPolicy.map { $0 != .disableEvaluation } ?? false
        if target.isLessSecure(than: hop.url), isEvaluated || !permitted.contains(.insecure) {
            return .insecure(from: source, to: target)
        }
        let sendsBody = redirection.keepsBody && (next.httpBody != nil || hop.upload != nil)
        let isSameServer = target.hasSameOrigin(as: hop.url) || target.isUpgrade(of: hop.url)
        if sendsBody, !isSameServer, !permitted.contains(.crossOriginData) {
            return .bodyToOtherOrigin(from: source, to: target)
        }
        return nil
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
            let credentials = TransferCredentials(credential, answering: response),
            permitted(credentials, for: hop.url) != nil
        else { return nil }
        return .follow(hop.request, .credential(credentials))
    }

    /// Returns the request's own credentials if they were set only after a 401 had been accepted as the response.
    func lateCredentials(for hop: Hop) -> TransferCredentials? {
        guard case .accept = hop.disposition, hop.failure == nil, hop.head?.status == 401,
            !hop.isAuthenticated,
            !hop.isCrossOrigin, plan.policy.followsRedirects
        else { return nil }
        return snapshot.credential.flatMap { TransferCredentials($0, answering: hop.head) }
            .flatMap { permitted($0, for: hop.url) }
    }

    /// Returns the credentials without the schemes that must not be used for the URL; `nil` if no scheme remains.
    func permitted(_ credentials: TransferCredentials, for url: URL?) -> TransferCredentials? {
        let relayable = options.allowsNTLMAndNegotiateOverHTTP ?? false
        return context.plainAuthentication.permitted(credentials, for: url, relayable: relayable)
    }

    private func credential(
        for challenge: AuthenticationChallenge,
        _ hop: Hop
    ) throws -> URLCredential? {
        if !hop.isCrossOrigin, let own = snapshot.credential { return own }
        guard let decide = context.delegate.taskDidReceiveChallenge, let session = context.manager else {
            return nil
        }
        let (disposition, credential) = decide(session, task, challenge)
        switch disposition {
        case .useCredential: return credential
        case .performDefaultHandling, .rejectProtectionSpace: return nil
        case .cancelAuthenticationChallenge: throw URLError.requestCancelled
        }
    }

    /// Sends the request again if its response is a 401 and the credentials were set only after that response.
    func credentialsWereSet() {
        guard outcome.head?.status == 401, !current.isAuthenticated else { return }
        amend(with: .credential)
    }
}
