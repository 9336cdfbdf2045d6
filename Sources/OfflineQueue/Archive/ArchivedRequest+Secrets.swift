extension ArchivedRequest {
    /// Returns the request without the secrets that versions before 5 stored. An export contains none, and an import
    /// removes those in an export of such a version. Its credential replaces them. A waiting request without one is held
    /// until it gets one.
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
        guard credential == nil, state == .pending || state == .blocked else { return request }
        request.state = .held
        request.holdReason = HoldReason.auth.rawValue
        request.lastError =
            "exports contain no secrets, so those of the request were removed; "
            + "give it a credential, or enqueue it again"
        return request
    }
}
