internal import ClientCore
internal import NetwatchTransport

/// Adds credentials to attempts, and refreshes each credential at most once at a time.
///
/// Providers are code of the program that may throw or never return, so each call has a time limit, and ``KeyedCalls``
/// limits the calls that hang: while four calls for a credential are overdue, the provider is not called for it again.
package actor CredentialResolver {
    /// An attempt with its credential.
    struct Authorized: Sendable {
        let attempt: Attempt
        /// The number of refreshes of the credential before it was added.
        let generation: Int
    }

    /// What a credential adds to the attempts of a request.
    private struct Addition: Sendable {
        let url: String
        let headers: [QueueRequest.Header]
        let permit: CredentialPermit
        let generation: Int
    }

    /// A refreshed credential.
    struct Refreshed: Sendable {
        let credential: String
        /// The time at which the refresh began.
        let began: ContinuousClock.Instant
    }

    /// A provider, as the key of its calls. Calls of a provider that was replaced do not delay its successor.
    private struct ProviderKey: Hashable {
        let credential: String
        /// The entry's id; `nil` for a credential of the source.
        let id: Int?
    }

    /// A registered credential.
    private struct Entry {
        /// Distinguishes the entry from earlier ones of the same name.
        let id: Int
        var credential: QueueCredential
        /// The number of successful refreshes.
        var generation = 0
        var refresh: Task<Bool, any Error>?
        /// The last refresh that succeeded, until a server accepts its value.
        var unproven: Refreshed?
        /// The times of the last refreshes.
        var refreshes: [ContinuousClock.Instant] = []
        /// Whether the last refresh failed, for example because its server cannot be reached.
        var hasFailed = false
    }

    /// The maximum number of refreshes of a credential within ``refreshWindow``. A server that rejects every new token
    /// would otherwise cause one refresh for each request. Alamofire's `RefreshWindow` has the same values.
    static let maximumRefreshes = 5
    static let refreshWindow: Duration = .seconds(30)

    private var maximumWait: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private var entries: [String: Entry] = [:]
    private var source: (any CredentialSource)?
    private let calls: KeyedCalls<ProviderKey>
    /// The calls to providers that add a credential to an attempt, by the name of the credential.
    private var additions: [String: ProviderCalls<Addition>] = [:]
    private var isAccepted: (@Sendable (Refreshed) async -> Void)?
    private var registrations = 0

    /// - Parameters:
    ///   - timeout: The maximum time for a call of a provider.
    ///   - maximumWait: The maximum time for which an attempt waits for a call; see `Configuration.credentialWait`.
    ///   - now: The clock of ``refreshWindow`` and of the delays after failures.
    init(
        timeout: Duration,
        maximumWait: Duration,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        calls = KeyedCalls(timeout: timeout)
        self.maximumWait = Self.wait(atMost: maximumWait, timeout)
        self.now = now
    }

    /// Replaces the maximum times of the initializer, for later calls.
    func use(timeout: Duration, maximumWait: Duration) {
        calls.timeout = timeout
        self.maximumWait = Self.wait(atMost: maximumWait, timeout)
    }

    /// Returns the time for which an attempt waits for a call. If `maximumWait` is longer than the call's timeout, the
    /// timeout ends the wait and reports a different reason.
    private static func wait(atMost maximumWait: Duration, _ timeout: Duration) -> Duration {
        maximumWait < timeout ? maximumWait : timeout + .seconds(3600)
    }

    func register(_ credential: QueueCredential, as name: String) {
        registrations += 1
        entries[name] = Entry(id: registrations, credential: credential)
        additions[name] = nil
    }

    /// Forgets the failed calls of the providers of changed credentials, so that the next attempt calls them without a
    /// delay.
    func forgetFailures(of names: Set<String>) {
        for name in names { additions[name] = nil }
    }

    /// Sets a function that is called when a server has accepted the value of a refresh.
    func onAcceptance(_ body: @escaping @Sendable (Refreshed) async -> Void) {
        isAccepted = body
    }

    func use(_ source: any CredentialSource) {
        self.source = source
    }

    /// The names of the credentials that exist now.
    var names: Set<String> {
        get async { Set(entries.keys).union(await source?.names() ?? []) }
    }

    /// Returns why a credential cannot be used; `nil` if it can, if the cause may pass, or if its source does not
    /// respond within ``maximumWait``.
    func refusal(of name: String) async -> WithheldReason? {
        do {
            _ = try await TimedCall.run(within: maximumWait) { try await self.credential(named: name) }
            return nil
        } catch {
            return (error as? WithheldReason).flatMap { $0.remedy == .change ? $0 : nil }
        }
    }

    /// Adds a credential to an attempt. Waits for a refresh in progress.
    ///
    /// The wait ends after ``maximumWait``; see ``ProviderCalls``.
    ///
    /// - Throws: ``WithheldReason``, or `CancellationError`.
    func authorize(_ attempt: Attempt, with name: String, _ session: SessionManager?) async throws
        -> Authorized
    {
        let call = try addition(to: attempt, of: name, session)
        do {
            let added = try await TimedCall.run(within: maximumWait) { try await call.value }
            removeCall(for: attempt, of: name)
            let authorized = attempt.authorized(url: added.url, headers: added.headers, added.permit)
            return Authorized(attempt: authorized, generation: added.generation)
        } catch is TimedCall.Timeout {
            throw WithheldReason.waiting(name, maximumWait)
        } catch let reason as WithheldReason {
            removeCall(for: attempt, of: name)
            throw additions[name]?.refusal(at: now()) ?? reason
        }
    }

    private func removeCall(for attempt: Attempt, of name: String) {
        additions[name]?.remove(attempt.id)
        // Requests may name any number of credentials that do not exist.
        if additions[name]?.isIdle == true { additions[name] = nil }
    }

    /// Returns the call that adds a credential to an attempt: a call that an earlier attempt of the request has begun,
    /// or a new call.
    private func addition(to attempt: Attempt, of name: String, _ session: SessionManager?) throws
        -> Task<Addition, any Error>
    {
        var calls = additions[name] ?? ProviderCalls(maximumWait: maximumWait)
        if let call = calls.task(of: attempt.id, at: now()) { return call }
        if let refusal = calls.refusal(at: now()) { throw refusal }
        guard !calls.areSlow(at: now()) else { throw WithheldReason.waiting(name, maximumWait) }
        let call = Task {
            do {
                let added = try await self.add(name, to: attempt, session)
                self.additions[name]?.end(attempt.id, nil, at: self.now())
                return added
            } catch {
                self.additions[name]?.end(attempt.id, error as? WithheldReason, at: self.now())
                throw error
            }
        }
        calls.begin(call, for: attempt.id, at: now())
        additions[name] = calls
        return call
    }

    private func add(_ name: String, to attempt: Attempt, _ session: SessionManager?) async throws
        -> Addition
    {
        if let refresh = entries[name]?.refresh { _ = try? await refresh.value }
        let generation = entries[name]?.generation ?? 0
        let credential = try await credential(named: name)
        // The sender checks the origin again. This check avoids a call of the provider for an origin that is not
        // permitted.
        let (permit, origin) = (credential.permit(named: name), try? TransferOrigin(url: attempt.url))
        guard let origin, permit.permits(origin) else { throw permit.refusal(of: origin) }
        let authorized = try await call(name) {
            try await credential.added(to: attempt, named: name, session)
        }
        // The attempt itself is not kept: it has an open file.
        return Addition(
            url: authorized.url,
            headers: authorized.headers,
            permit: authorized.permit ?? permit,
            generation: generation
        )
    }

    private func credential(named name: String) async throws -> QueueCredential {
        if let entry = entries[name] { return entry.credential }
        guard let source else {
            throw WithheldReason(.change, "no credential has the name `\(name)`", isUnknown: true)
        }
        return try await call(name) { try await source.credential(named: name) }
    }
}

// MARK: - Refreshes

extension CredentialResolver {
    /// Refreshes a credential that a server rejected, and adds it to the attempt again.
    ///
    /// - Returns: The attempt to send immediately; `nil` if nothing changed, so that another attempt would be rejected,
    ///   too.
    /// - Throws: ``WithheldReason``, or `CancellationError`.
    func renew(
        _ attempt: Attempt,
        with name: String,
        after rejected: Authorized,
        _ session: SessionManager?
    ) async throws -> Authorized? {
        let isRefreshed = try await refresh(name, after: rejected, session)
        let renewed = try await authorize(attempt, with: name, session)
        let isChanged = !renewed.attempt.hasCredential(of: rejected.attempt)
        return isRefreshed || isChanged ? renewed : nil
    }

    private func refresh(
        _ name: String,
        after rejected: Authorized,
        _ session: SessionManager?
    ) async throws -> Bool {
        guard let entry = entries[name], entry.credential.isRefreshable else { return false }
        // Another attempt has refreshed the credential since it was added to this one.
        if entry.generation > rejected.generation { return true }
        if let refresh = entry.refresh { return try await wait(for: refresh, of: name) }
        guard mayRefresh(name) else {
            if entry.hasFailed { throw WithheldReason.refreshFailing(name) }
            return false
        }
        let refresh = Task {
            try await self.performRefresh(name, entry, rejected.attempt.sent, session)
        }
        entries[name]?.refresh = refresh
        return try await wait(for: refresh, of: name)
    }

    private func wait(for refresh: Task<Bool, any Error>, of name: String) async throws -> Bool {
        do {
            return try await TimedCall.run(within: maximumWait) { try await refresh.value }
        } catch is TimedCall.Timeout {
            throw WithheldReason.waiting(name, maximumWait)
        }
    }

    private func mayRefresh(_ name: String) -> Bool {
        let now = now()
        entries[name]?.refreshes.removeAll { now - $0 > Self.refreshWindow }
        guard let entry = entries[name], entry.refreshes.count < Self.maximumRefreshes else { return false }
        entries[name]?.refreshes.append(now)
        return true
    }

    private func performRefresh(
        _ name: String,
        _ entry: Entry,
        _ sent: SentRequest?,
        _ session: SessionManager?
    ) async throws -> Bool {
        let began = ContinuousClock.now
        do {
            let isRefreshed = try await call(name) {
                try await entry.credential.refresh(after: sent, session)
            }
            refreshEnded(name, entry.id) { ended in
                ended.hasFailed = false
                guard isRefreshed else { return }
                ended.generation += 1
                ended.unproven = Refreshed(credential: name, began: began)
            }
            return isRefreshed
        } catch {
            refreshEnded(name, entry.id) { $0.hasFailed = true }
            throw error
        }
    }

    /// Records the end of a refresh, unless another credential has been registered meanwhile.
    private func refreshEnded(_ name: String, _ id: Int, _ record: (inout Entry) -> Void) {
        guard entries[name]?.id == id else { return }
        entries[name]!.refresh = nil
        record(&entries[name]!)
    }
}

extension CredentialResolver {
    /// Records that a server has accepted an attempt's credential.
    func accepted(_ authorized: Authorized, of name: String) {
        guard let entry = entries[name], let refreshed = entry.unproven,
            authorized.generation == entry.generation
        else { return }
        entries[name]!.unproven = nil
        // The release of other requests must not delay the outcome of this one.
        if let isAccepted { Task { await isAccepted(refreshed) } }
    }
}

// MARK: - Calls of providers

extension CredentialResolver {
    /// Calls a provider.
    ///
    /// - Throws: ``WithheldReason``, or `CancellationError` if the caller's task was cancelled.
    private func call<Value: Sendable>(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let key = ProviderKey(credential: name, id: entries[name]?.id)
        let callee = "the provider of the credential `\(name)`"
        do {
            return try await calls.run(for: key, of: callee, keys: "credentials", body)
        } catch let reason as WithheldReason {
            throw reason
        } catch {
            if Task.isCancelled { throw CancellationError() }
            throw WithheldReason(.retry, "the credential `\(name)` is unavailable: \(error)")
        }
    }
}

extension WithheldReason {
    static func waiting(_ name: String, _ maximumWait: Duration) -> WithheldReason {
        WithheldReason(
            .retry,
            "the provider of the credential `\(name)` has not returned within \(maximumWait.words); the request waits "
                + "for it"
        )
    }

    fileprivate static func refreshFailing(_ name: String) -> WithheldReason {
        WithheldReason(.retry, "the credential `\(name)` is unavailable: its last refresh failed")
    }
}
