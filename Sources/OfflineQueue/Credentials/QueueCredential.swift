public import ClientCore

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
