/// A limit that all users share, such as a number of slots or of bytes, and the parts of it that some of them may use.
///
/// Only root and the user of the service may use all of it. So one user leaves room for other users, and all of them
/// leave room for an administrator.
package struct SharedLimit: Hashable, Sendable {
    /// Whose use of a limit is counted.
    package enum Scope: Hashable, Sendable, CaseIterable {
        /// One user without full access: at most a quarter of the limit, and at least 1.
        case user
        /// All users without full access together: at most seven eighths of the limit.
        case users
        /// All users.
        case all

        /// Whose use is counted, as the end of a noun phrase.
        package var owner: String {
            switch self {
            case .user: " of one user"
            case .users: " of users without full access"
            case .all: ""
            }
        }
    }

    private let limit: Int

    package init(_ limit: Int) {
        self.limit = limit
    }

    /// Returns how much the users of a scope may use.
    package func value(for scope: Scope) -> Int {
        switch scope {
        case .user: max(1, limit / 4)
        case .users: limit - limit / 8
        case .all: limit
        }
    }
}
