internal import ClientCore

extension CredentialResolver {
    /// Refreshes a credential that a server rejected, and adds it to the attempt again.
    ///
    /// - Returns: The attempt to send immediately; `nil` if nothing changed, so that another attempt would be rejected,
    ///   too.
    /// - Throws: ``CredentialFault``, or `CancellationError`.
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
            if entry.hasFailed { throw CredentialFault.refreshFailing(name) }
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
            return try await TimedCall.run(within: patience) { try await refresh.value }
        } catch is TimedCall.Timeout {
            throw CredentialFault.waiting(name, patience)
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
        let began = Timestamp.now
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
