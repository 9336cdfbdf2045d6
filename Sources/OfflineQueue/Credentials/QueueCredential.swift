public import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A credential that a queue adds to requests at each attempt, and the origins to which it may be sent.
///
/// ```swift
/// let credential = try QueueCredential(origins: ["https://*.example.com"]) {
///     .bearer(try String(contentsOf: tokenURL, encoding: .utf8))
/// }
/// ```
///
/// The queue stores only the name under which the credential is registered; see ``OfflineQueue/register(_:as:)``.
public struct QueueCredential: Sendable {
    enum Provider: Sendable {
        case value(
            @Sendable () async throws -> CredentialValue,
            refresh: (@Sendable () async throws -> Void)?
        )
        case adapter(any RequestAdapter)
        case interceptor(any RequestInterceptor)
    }

    let provider: Provider
    private let origins: [OriginPattern]

    private init(_ provider: Provider, _ origins: [String]) throws(QueueError) {
        guard !origins.isEmpty else {
            throw QueueError(.invalidOption, "a credential must list at least one origin")
        }
        var patterns: [OriginPattern] = []
        for text in origins { patterns.append(try OriginPattern(text)) }
        self.provider = provider
        self.origins = patterns
    }

    /// Creates a credential from a function that returns its value.
    ///
    /// The functions are called from any task, and must not block their thread. Each call has to return within
    /// ``OfflineQueue/Configuration/credentialTimeout``. If one throws, the queue tries the request again later; the
    /// description of the error is stored, so it must not contain secrets.
    ///
    /// - Parameters:
    ///   - origins: The origins to which the credential may be sent, such as `https://api.example.com`. A host may
    ///     begin with `*.`, which stands for one or more labels. The default of the port is the scheme's port.
    ///   - refresh: A function that gets a new value, for example from a token service. It is called when the server
    ///     responds with 401, once for all requests that wait for it. Default `nil`: the value cannot be refreshed.
    ///   - value: A function that returns the current value. It is called at each attempt.
    /// - Throws: ``QueueError`` with `invalidOption` if an origin is invalid or there is none.
    @preconcurrency
    public init(
        origins: [String],
        refresh: (@Sendable () async throws -> Void)? = nil,
        value: @escaping @Sendable () async throws -> CredentialValue
    ) throws(QueueError) {
        try self.init(.value(value, refresh: refresh), origins)
    }

    /// Creates a credential with a constant value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - origins: The origins to which it may be sent, as in ``init(origins:refresh:value:)``.
    /// - Throws: ``QueueError`` with `invalidOption` if an origin or the value is invalid, or there is no origin.
    public init(_ value: CredentialValue, origins: [String]) throws(QueueError) {
        if let fault = value.fault { throw QueueError(.invalidOption, fault) }
        try self.init(.value({ value }, refresh: nil), origins)
    }

    /// Creates a credential from an adapter, which adds it to each attempt. The adapter is called on a thread where it
    /// may block.
    ///
    /// The adapter may change header fields, and the path and query of the URL. If it changes the origin, the method or
    /// the body, nothing is sent. After a response with 401 it is called again; if its result differs, the request is
    /// sent again immediately.
    ///
    /// - Parameters:
    ///   - adapter: The adapter.
    ///   - origins: The origins to which the credential may be sent, as in ``init(origins:refresh:value:)``.
    /// - Throws: ``QueueError`` with `invalidOption` if an origin is invalid or there is none.
    public init(adapter: any RequestAdapter, origins: [String]) throws(QueueError) {
        try self.init(.adapter(adapter), origins)
    }

    /// Creates a credential from an interceptor, which adds it to each attempt and refreshes it.
    ///
    /// The same rules as for ``init(adapter:origins:)`` apply. After a response with 401, `retry` is called once for
    /// all requests that wait for it, with the queue's session and an error of the validation. If it returns `retry` or
    /// `retryWithDelay`, the requests are adapted and sent again immediately. The delay is ignored.
    ///
    /// - Parameters:
    ///   - interceptor: The interceptor.
    ///   - origins: The origins to which the credential may be sent, as in ``init(origins:refresh:value:)``.
    /// - Throws: ``QueueError`` with `invalidOption` if an origin is invalid or there is none.
    public init(interceptor: any RequestInterceptor, origins: [String]) throws(QueueError) {
        try self.init(.interceptor(interceptor), origins)
    }

    /// Returns the permit of an attempt with the credential.
    func permit(named name: String, identity: ClientIdentity? = nil) -> CredentialPermit {
        CredentialPermit(name: name, origins: origins, identity: identity)
    }
}

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

/// Credentials that are not registered, for example files. A registered credential of the same name takes precedence.
package protocol CredentialSource: Sendable {
    /// Returns the credential of this name. Called at each attempt.
    ///
    /// - Throws: ``WithheldReason`` if there is none, or it cannot be used.
    func credential(named name: String) async throws -> QueueCredential

    /// Returns the names of the credentials that exist now, in no particular order. Some of them may be unusable.
    func names() async -> [String]
}
