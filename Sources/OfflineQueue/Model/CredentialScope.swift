/// The requests that a server usually accepts or rejects together: those to one origin with the same credential.
package struct CredentialScope: Hashable, Comparable, Sendable {
    /// The name of the credential; `nil` for requests without one, to which the session may add secrets.
    package let credential: String?
    package let origin: Origin

    package init(credential: String?, origin: Origin) {
        self.credential = credential
        self.origin = origin
    }

    package static func < (left: CredentialScope, right: CredentialScope) -> Bool {
        (left.credential ?? "", "\(left.origin)") < (right.credential ?? "", "\(right.origin)")
    }
}

/// The place of a held request in the order in which held requests are tried: by lane, and then in the order of
/// acceptance.
package struct HeldPlace: Hashable, Comparable, Sendable {
    package let lane: Int64
    package let sequence: Int64

    package init(lane: Int64, sequence: Int64) {
        (self.lane, self.sequence) = (lane, sequence)
    }

    package static func < (left: HeldPlace, right: HeldPlace) -> Bool {
        (left.lane, left.sequence) < (right.lane, right.sequence)
    }
}

/// An order to release requests that are held for `auth`.
package enum HeldRelease: Hashable, Sendable {
    /// One request of a scope, which finds out whether the server accepts the others. `last` is the place of the request
    /// that was released before; the next one follows it, and the first one follows the last one.
    case next(CredentialScope, after: HeldPlace?)
    /// All requests of a scope.
    case all(CredentialScope)
    /// The first request of each of the next lanes, whatever its credential is.
    case lanes(after: Int64)
}

/// What a ``HeldRelease`` released.
package enum ReleasedRequests: Hashable, Sendable {
    /// No request is held that an attempt of this queue has held.
    case none
    /// None was released: the attempt of the request that was released before has not ended, and no other lane has such
    /// requests, or all lanes with such requests are paused.
    case waiting
    /// Requests were released. `last` is the place of the last one.
    case some(last: HeldPlace)
}
