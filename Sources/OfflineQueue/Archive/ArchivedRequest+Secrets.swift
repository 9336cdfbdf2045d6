internal import ClientCore

extension ArchivedRequest {
    /// Returns the request without secrets, such as the signature of a signed URL. An export contains none, and an import
    /// removes those of a changed export.
    ///
    /// The credential of the request replaces them. A request without one is held.
    func withoutSecrets() -> ArchivedRequest {
        // A malformed line is refused later.
        guard headers.allSatisfy({ $0.count == 2 }) else { return self }
        let fields = headers.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
        let stored = QueueRequest(method: method, url: url, headers: fields)
        let clean = SecretRemoval.apply(to: stored)
        guard clean.url != stored.url || clean.headers != stored.headers else { return self }
        var request = self
        request.url = clean.url
        request.headers = clean.headers.map { [$0.name, $0.value] }
        guard credential == nil else { return request }
        if SecretQueryItems.isSigned(url) {
            request.holdWithoutSignature()
        } else {
            request.holdWithoutCredential()
        }
        return request
    }

    /// Holds a waiting request until it gets a credential. If a restart or a flush releases it without one, the server
    /// responds with 401, and the request is held again.
    private mutating func holdWithoutCredential() {
        guard state == .pending || state == .blocked else { return }
        hold(
            .auth,
            "exports contain no secrets, so those of the request were removed; "
                + "give it a credential, or enqueue it again"
        )
    }

    /// Holds a request until a user releases or drops it, unless it is dead or already held in this way. No other
    /// release is possible: the server would respond with 403 to the URL without its signature, and the request would
    /// be dead.
    private mutating func holdWithoutSignature() {
        let reason = holdReason.flatMap(HoldReason.init(rawValue:))
        guard state != .dead, reason.map(HoldReason.releasableByRestart.contains) ?? true else { return }
        hold(
            .user,
            "exports contain no signatures, so that of the URL was removed; "
                + "drop the request, and enqueue it again with a new signature"
        )
    }

    /// Holds an unfinished request with an option that this version does not know. Only a user can release it, because it
    /// is then sent without the option, which neither an export nor the row of an imported request contains.
    mutating func holdWithoutUnknownOption() {
        guard let reason = options.options.unreadable, state != .dead else { return }
        options.options.unreadable = nil
        hold(.user, "\(reason); release it to send it without the option")
    }

    private mutating func hold(_ reason: HoldReason, _ error: String) {
        (state, holdReason, lastError) = (.held, reason.rawValue, error)
    }
}
