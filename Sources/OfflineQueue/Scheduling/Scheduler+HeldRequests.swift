internal import NetwatchEventLoop

// Tries held requests again whose cause may have passed: of lanes whose server was not trusted, and of credentials that a
// server rejected.

extension Scheduler {
    /// Held requests that are tried again at the same time.
    enum HeldGroup: Hashable, Comparable, Sendable {
        /// The requests of a lane whose server was not trusted.
        case lane(Int64)
        /// The requests that a server rejected because of a credential.
        case credential(CredentialScope)
        /// The requests of the credentials that have no times of their own (``AuthRetries/maximumScopes``).
        case otherCredentials
    }

    /// Tries the held requests whose time has come.
    mutating func tryHeld(now: Moment, _ actions: inout [Action]) {
        guard !isStopped else { return }
        while let group = heldTimes.removeFirst(until: now) {
            switch group {
            case .lane(let id):
                releaseDistrusted(id, now: now)
                schedule(id, now: now)
            case .credential(let scope):
                order(auth.nextCame(scope, now: now, &random), &actions)
                setTime(of: scope)
            case .otherCredentials:
                order(auth.nextOfOthersCame(now: now, &random), &actions)
                heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
            }
        }
    }

    private mutating func releaseDistrusted(_ id: Int64, now: Moment) {
        guard let until = lanes[id]?.distrustedUntil, until <= now else { return }
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.releasing = (lanes[id]!.releasing ?? []).union([.trust])
        lanes[id]!.rowsAreDue(at: now)
    }

    private func order(_ release: HeldRelease?, _ actions: inout [Action]) {
        if let release, !isStopped { actions.append(.release(release)) }
    }

    private mutating func setTime(of scope: CredentialScope) {
        heldTimes.set(.credential(scope), to: auth.next(scope))
        heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
    }

    /// Returns when held requests are tried next: those of a lane whose server is not trusted, or one of those with a
    /// credential. Returns `nil` for other reasons, and if it is not known.
    ///
    /// - Parameter scope: Returns the scope of the request's credential.
    package func nextTry(ofHeld reason: HoldReason, lane: Int64?, _ scope: () -> CredentialScope?) -> Moment?
    {
        switch reason {
        case .trust: lane.flatMap { lanes[$0]?.distrustedUntil ?? unloaded[$0]?.distrustedUntil }
        case .auth: auth.isEmpty ? nil : scope().flatMap { auth.next($0) } ?? auth.nextOfOthers
        case .configuration, .ambiguous, .user, .dependency, .key: nil
        }
    }
}

// MARK: - Credentials

extension Scheduler {
    /// Whether requests are held because a server rejected their credentials.
    package var hasRejectedCredentials: Bool { !auth.isEmpty }

    mutating func credentialRejected(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ actions: inout [Action]
    ) {
        order(auth.rejected(scope, request, began: began, now: now, &random), &actions)
        setTime(of: scope)
    }

    mutating func credentialAccepted(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ actions: inout [Action]
    ) {
        order(auth.accepted(scope, request, began: began, now: now, &random), &actions)
        setTime(of: scope)
    }

    mutating func released(_ release: HeldRelease, _ requests: ReleasedRequests) {
        auth.released(release, requests)
        switch release {
        case .next(let scope, _), .all(let scope): setTime(of: scope)
        case .lanes: heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
        }
    }

    /// Starts the times of rejected credentials again: of those with these names, or to the hosts of a flush.
    mutating func restartCredentials(now: Moment, where isChanged: (CredentialScope) -> Bool) {
        for scope in auth.restart(now: now, &random, where: isChanged) { setTime(of: scope) }
    }
}
