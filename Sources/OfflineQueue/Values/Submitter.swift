/// The user of this machine who enqueues a request or uploads a body.
package struct Submitter: Hashable, Sendable {
    /// The id of the user.
    package let user: UInt32
    /// The user's limits. `nil` for a user without limits, who may also change the requests of other users.
    package let quota: UserQuota?

    package init(user: UInt32, quota: UserQuota? = nil) {
        self.user = user
        self.quota = quota
    }

    /// Returns whether a new request may replace a stored one, or repeat it.
    ///
    /// - Parameter owner: The user who has enqueued the stored request; `nil` if that is not known.
    func mayChange(_ owner: UInt32?) -> Bool { quota == nil || owner == user }
}

/// What the requests and uploads of one user may use of the queue. The limits of the queue apply as well.
package struct UserQuota: Hashable, Sendable {
    /// The maximum number of unfinished requests. Default 100,000.
    package var requests = 100_000
    /// The maximum size of all unfinished requests in bytes. Default 1 GiB.
    package var bytes: Int64 = 1 << 30
    /// The maximum size in bytes of a user's uploads that no request uses yet. Bodies over 64 KiB of the user's requests
    /// that wait for room count, too. Default 1 GiB.
    package var stagedBytes: Int64 = 1 << 30

    package init() {}
}

/// Whose requests a query or a filter selects.
package enum SelectedSubmitter: Hashable, Sendable {
    /// The requests that a user has enqueued.
    case user(UInt32)
    /// The requests without a submitter, which were enqueued within the process.
    case process
}

/// Who becomes the submitter of imported requests.
package enum ImportedSubmitters: Hashable, Sendable {
    /// The submitters in the export. Their ids are those of the machine that has written it.
    case original
    /// A user of this machine; `nil` for none.
    case user(UInt32?)

    /// Returns the submitter of an imported request.
    func submitter(insteadOf original: UInt32?) -> UInt32? {
        switch self {
        case .original: original
        case .user(let user): user
        }
    }
}

extension Optional<Submitter> {
    /// Whether the request or upload of a user may be changed. Callers within the process may change all.
    func mayChange(_ owner: UInt32?) -> Bool { self?.mayChange(owner) ?? true }
}
