// The number of uploads, which all users share.
extension StagedBodies {
    /// Returns whether the users of a scope have so many uploads that `submitter` cannot start another one.
    private func isFull(_ scope: SharedLimit.Scope, for submitter: Submitter?) -> Bool {
        let limit = capacity.value(for: scope)
        switch scope {
        case .user: return submitter.limitedUser.map { load(of: $0).bodies >= limit } ?? false
        case .users: return submitter.limitedUser != nil && entries.values.count(where: \.isLimited) >= limit
        case .all: return entries.count >= limit
        }
    }

    /// Removes the longest stalled upload of each scope in which there is no room for another upload of `submitter`.
    func makeRoom(for submitter: Submitter?) async {
        for scope in SharedLimit.Scope.allCases where isFull(scope, for: submitter) {
            let longest = stalled.first { _, entry in
                switch scope {
                case .user: entry.user == submitter.limitedUser
                case .users: entry.isLimited
                case .all: true
                }
            }
            if let longest { await remove(longest.key) }
        }
    }

    /// Checks that there is room for another upload of `submitter`.
    ///
    /// - Throws: ``QueueError``: `quotaExceeded`, `tooManyStagedBodies`.
    func checkCapacity(for submitter: Submitter?) throws(QueueError) {
        try checkShare(of: submitter)
        for scope in [SharedLimit.Scope.users, .all] where isFull(scope, for: submitter) {
            throw QueueError(
                .tooManyStagedBodies,
                "the maximum of \(capacity.value(for: scope)) uploads\(scope.owner) is reached"
            )
        }
    }

    /// Checks that `submitter` may have another upload, or another body of a waiting request.
    ///
    /// - Throws: ``QueueError`` with `quotaExceeded`.
    func checkShare(of submitter: Submitter?) throws(QueueError) {
        guard let user = submitter.limitedUser, isFull(.user, for: submitter) else { return }
        throw QueueError(
            .quotaExceeded,
            "the user \(user) has \(load(of: user).bodies) uploads and bodies of waiting requests; the maximum is "
                + "\(capacity.value(for: .user))"
        )
    }
}
