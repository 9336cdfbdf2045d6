internal import NetwatchEventLoop

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

/// The background tasks. ``start()`` starts them and ``stop()`` cancels them.
extension OfflineQueue {
    /// Passes lanes with new requests to the scheduler. It does not matter which caller enqueued the requests.
    func followChanges() async {
        while !Task.isCancelled {
            let lanes = await store.changes.next()
            guard !lanes.isEmpty else { return }
            announce(lanes)
        }
    }

    /// Gives up expired requests, removes old history and checks the free space of the disk: when the next request
    /// expires, and at least once a minute.
    func sweep() async {
        while !Task.isCancelled {
            do {
                let next = try await store.expire()
                capacityWaiters.changed()
                await checkDisk()
                await resolveFinished()
                await sweeper.pause(next)
            } catch {
                return failed(error)
            }
        }
    }

    /// Warns when the disk becomes full, and when it has much more space again: each delivery frees some, which the next
    /// request takes. If the space cannot be read now, the next sweep checks it.
    private func checkDisk() async {
        let needed = StoredBody.maximumInlineBytes * (isDiskFull ? 16 : 1)
        guard let isFull = try? await store.isDiskFull(forBody: needed), isFull != isDiskFull else { return }
        isDiskFull = isFull
        warn(
            isFull
                ? "the disk is full, so new requests are refused, large ones first; accepted ones are still sent"
                : "the disk has space again, so new requests are accepted"
        )
    }

    /// Removes the spool files that a crash left without a row.
    ///
    /// A file is removed only if neither the index nor the table has a row that refers to it, because a damaged index
    /// may miss rows. Usually the index finds a row for every file, and the tables are not read.
    ///
    /// If reading the tables finds damage, the store stops, as with every read. Other errors are ignored, because
    /// these files only take up space. The next start tries again.
    func sweepSpool() async {
        let (archive, spool) = (store.archive, store.spool)
        guard let found = try? await spool.orphans(keeping: { archive.isFileNamed($0) }), !found.isEmpty,
            let unused = try? await archive.unusedFiles(among: found)
        else { return }
        let removed = Set(unused)
        _ = try? await spool.sweep { !removed.contains($0) }
    }

    /// Encrypts the stored requests that are not encrypted with the current key, after a key was added. A pass leaves a
    /// request in flight, and a body for which the disk has no space, to the next pass. Passes are repeated until no
    /// request is left that can be encrypted.
    func reseal() async {
        var isReported = false
        while !Task.isCancelled {
            let pass = await resealOnce()
            guard !hasFailed, !Task.isCancelled else { return }
            if let problem = pass.problem, !isReported {
                warn("some stored requests are not encrypted with the current key: \(problem)")
            }
            isReported = pass.problem != nil
            guard pass.postponed > 0 else { return }
            try? await Task.sleep(for: configuration.resealInterval, clock: .continuous)
        }
    }

    /// Examines all stored requests once, and encrypts those that are not encrypted with the current key.
    ///
    /// - Returns: The end of the pass. An error that does not end the store ends only this pass.
    private func resealOnce() async -> ResealCursor {
        var place = ResealCursor()
        do {
            while !Task.isCancelled, let next = try await store.reseal(after: place) { place = next }
        } catch {
            failed(error)
            place.postponed += 1
            place.problem = place.problem ?? (error as? QueueError)?.message ?? "\(error)"
        }
        return place
    }

    /// Checks once a second whether a read has found damage, and whether the store's files were removed, moved or
    /// replaced. If so, stops sending.
    ///
    /// Each commit makes the same checks. Without this task, a queue that does not write would continue.
    func watchStore() async {
        while (try? await Task.sleep(for: .seconds(1), clock: .continuous)) != nil {
            do {
                try await store.check()
            } catch {
                return failed(error)
            }
        }
    }

    /// Scans the store at intervals, and warns about the first damage that a scan finds.
    func scanStore() async {
        await scanner.run { finding in
            await self.warn(
                "a scan of the queue has found damage: \(finding); `netwatch doctor` shows what to do"
            )
        }
    }
}
