internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension QueueCredential {
    /// Whether a refresh may change the credential.
    var isRefreshable: Bool {
        switch provider {
        case .value(_, let refresh): refresh != nil
        case .adapter: false
        case .interceptor: true
        }
    }

    /// Returns the attempt with the credential.
    ///
    /// - Parameter name: The name of the credential, for messages.
    /// - Throws: ``WithheldReason``, or the error of the provider.
    func added(to attempt: Attempt, named name: String, _ session: SessionManager?) async throws -> Attempt {
        switch provider {
        case .value(let value, _):
            let value = try await value()
            if let fault = value.fault {
                throw WithheldReason(.change, "the credential `\(name)` is invalid: \(fault)")
            }
            guard value.identity == nil || attempt.url.lowercased().hasPrefix("https:") else {
                throw WithheldReason.certificateOverHTTP(name)
            }
            let (url, headers) = value.added(to: attempt.url, attempt.headers)
            let permit = permit(named: name, identity: value.identity)
            return attempt.authorized(url: url, headers: headers, permit)
        case .adapter(let adapter):
            return try await adapted(attempt, name) { request in
                try await DispatchQueue.global().run { try adapter.adapt(request) }
            }
        case .interceptor(let interceptor):
            guard let session else { throw WithheldReason.withoutSession(name) }
            return try await adapted(attempt, name) { try await interceptor.adapt($0, for: session) }
        }
    }

    private func adapted(
        _ attempt: Attempt,
        _ name: String,
        by adapt: (URLRequest) async throws -> URLRequest
    ) async throws -> Attempt {
        guard let request = URLRequest(attempt) else {
            return attempt.authorized(url: attempt.url, headers: attempt.headers, permit(named: name))
        }
        let adapted = try await adapt(request)
        guard let url = adapted.url?.absoluteString, adapted.httpMethod == request.httpMethod,
            adapted.httpBody == request.httpBody, adapted.httpBodyStream == nil,
            let origin = try? Origin(url: url), origin == (try? Origin(url: attempt.url))
        else {
            throw WithheldReason(
                .change,
                "the adapter of the credential `\(name)` changed the origin, the method or the body of the request; "
                    + "it may only change header fields, and the path and query of the URL"
            )
        }
        let fields = (adapted.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        // The client would refuse such a field as well, but its error contains the value.
        for (field, value) in fields where !HTTPToken.isValid(field) || !HTTPFieldValue.isValid(value) {
            throw WithheldReason(
                .change,
                "the adapter of the credential `\(name)` sets a header field that is not valid, such as a value "
                    + "with a control character"
            )
        }
        let headers = fields.map { QueueRequest.Header(name: $0.key, value: $0.value) }
        return attempt.authorized(url: url, headers: headers, permit(named: name))
    }

    /// Refreshes the credential after a response with 401.
    ///
    /// - Returns: Whether the request should be sent again.
    func refresh(after sent: SentRequest?, _ session: SessionManager?) async throws -> Bool {
        switch provider {
        case .value(_, let refresh?):
            try await refresh()
            return true
        case .value, .adapter: return false
        case .interceptor(let interceptor):
            guard let session, let request = sent?.request else { return false }
            let error = AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 401))
            switch await interceptor.retry(request, for: session, dueTo: error) {
            case .retry, .retryWithDelay: return true
            case .doNotRetry: return false
            case .doNotRetryWithError(let error): throw error
            }
        }
    }
}

extension WithheldReason {
    fileprivate static func certificateOverHTTP(_ name: String) -> WithheldReason {
        WithheldReason(
            .change,
            "the credential `\(name)` is a client certificate, which is sent only to `https` origins"
        )
    }

    fileprivate static func withoutSession(_ name: String) -> WithheldReason {
        WithheldReason(.change, "the credential `\(name)` has an interceptor, but the queue has no session")
    }
}
