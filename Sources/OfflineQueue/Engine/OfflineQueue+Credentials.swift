/// Credentials, which the queue adds to requests at each attempt.
extension OfflineQueue {
    /// Registers a credential, or replaces the one of this name.
    ///
    /// Register the credentials before ``start()``. Requests whose credential is not registered are held for
    /// ``HoldReason/auth``. This call releases the requests that are held for this name, and so does every later call
    /// with the same name.
    ///
    /// ```swift
    /// let credential = try QueueCredential(.bearer(token), origins: ["https://api.example.com"])
    /// try await queue.register(credential, as: "api")
    ///
    /// var options = EnqueueOptions()
    /// options.credential = "api"
    /// let receipt = try await queue.enqueue(request, options: options)
    /// ```
    ///
    /// - Parameters:
    ///   - credential: The credential.
    ///   - name: The name to which ``EnqueueOptions/credential`` refers.
    /// - Throws: ``QueueError``: `invalidOption` if the name is not accepted; errors of the store.
    public func register(_ credential: QueueCredential, as name: String) async throws {
        try CredentialName.check(name)
        await credentials.register(credential, as: name)
        try await credentialsChanged([name])
    }

    /// Changes the credential of waiting or held requests.
    ///
    /// Requests that are held for ``HoldReason/auth`` are released, and pending ones are due now. Holds for other
    /// reasons continue. Secrets that are stored with a request are removed for good, including the signature of a
    /// signed URL (``EnqueueOptions/allowsSignature``).
    ///
    /// - Parameters:
    ///   - name: The name of the new credential.
    ///   - ids: The ids of the requests.
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError``: `invalidOption` if the name is not accepted; errors of the store.
    public func setCredential(_ name: String, of ids: [String]) async throws -> [EditResult] {
        try CredentialName.check(name)
        guard !ids.isEmpty else { return [] }
        return try await reporting { try await store.setCredential(name, of: ids) }
    }

    /// Sets where credentials come from that are not registered.
    package func use(_ source: any CredentialSource) async {
        await credentials.use(source)
    }

    /// The names of the credentials that exist now: registered ones, and those of the source.
    package var credentialNames: Set<String> {
        get async { await credentials.names }
    }

    /// Returns why the credential of this name, which must be valid, cannot be used; `nil` if it can, or if that is not
    /// known now.
    package func credentialFault(of name: String) async -> WithheldReason? {
        await credentials.refusal(of: name)
    }

    /// Releases the requests that are held because of these credentials, which have changed.
    ///
    /// An attempt that began before the change may be about to hold its request. ``releaseIfChanged(_:)`` releases it
    /// then.
    package func credentialsChanged(_ names: Set<String>) async throws {
        for name in names { credentialChanges[name, default: 0] += 1 }
        handle(.credentialsChanged(names))
        await credentials.forgetFailures(of: names)
        guard phase == .running else { return }
        for name in names.sorted() {
            try await reporting { try await store.releaseRequests(heldForCredential: name, triedBefore: nil) }
        }
    }

    /// Releases the requests that were held before a refresh of their credential, because a server has accepted the
    /// refreshed value.
    ///
    /// Requests that the server rejected with the refreshed value stay held. Otherwise they would cause refreshes and
    /// releases in turn, without end.
    func credentialAccepted(_ refreshed: CredentialResolver.Refreshed) async {
        guard phase == .running else { return }
        do {
            try await store.releaseRequests(
                heldForCredential: refreshed.credential,
                triedBefore: refreshed.began
            )
        } catch {
            failed(error)
        }
    }

    /// Tells the scheduler whether a server accepted or rejected the credential of a request.
    func report(_ verdict: Verdict, of request: ClaimedRequest) {
        let isRejected = verdict == .held(.auth)
        guard isRejected || verdict.isDelivered && scheduler.hasRejectedCredentials,
            let origin = try? Origin(url: request.url), let began = inflight[request.sequence]?.began
        else { return }
        let scope = CredentialScope(credential: request.options.credential, origin: origin)
        handle(
            isRejected
                ? .credentialRejected(scope, request: request.sequence, began: began)
                : .credentialAccepted(scope, request: request.sequence, began: began)
        )
    }

    /// Releases requests that are held for `auth`, because the scheduler has ordered it.
    func release(_ release: HeldRelease) async {
        guard phase == .running else { return }
        do {
            handle(.released(release, try await store.release(release)))
        } catch {
            failed(error)
        }
    }

    /// Releases a request that was just held because of its credential, if that credential has changed since the
    /// attempt began.
    func releaseIfChanged(_ request: ClaimedRequest) async throws {
        guard let name = request.options.credential, let attempt = inflight[request.sequence],
            attempt.credentialChanges != credentialChanges[name, default: 0]
        else { return }
        try await store.releaseRequests(heldForCredential: name, triedBefore: nil)
    }
}
