internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Decides about redirects and challenges, by the delegate's closures or by default.

extension RequestCore {
    /// Returns the redirect to follow; `nil` if the response is not a redirect or must not be followed.
    func redirection(_ response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition? {
        guard plan.policy.followsRedirects,
            let redirection = try Redirection(
                of: hop.request,
                status: response.status,
                location: response.head.fields.exactValues(of: "Location").first
            ),
            let next = answer(to: redirection, response)
        else { return nil }
        try current.countRedirect()
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
        case .cancelAuthenticationChallenge: throw URLError.requestCancelled
        }
    }

    /// Sends the request again if its response is a 401 and the credentials were set only after that response.
    func credentialsWereSet() {
        guard outcome.head?.status == 401, !current.isAuthenticated else { return }
        amend(with: .credential)
    }
}
