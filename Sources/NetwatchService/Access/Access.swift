package import Glibc
internal import NetwatchEventLoop
package import OfflineQueue

/// What a user may do with the control API. Each level includes the lower ones.
package enum Access: Int, Hashable, Sendable, Comparable, CaseIterable {
    /// Nothing, not even to connect.
    case none
    /// Reads the state of the service, and of the requests of other users only their ids, states and hosts.
    case read
    /// Submits requests, and edits its own.
    case submit
    /// Everything, for the requests of all users.
    case full

    /// What only this level and higher ones permit, as the end of a sentence.
    var permission: String {
        switch self {
        case .none: "connect to the service"
        case .read: "read the state of the queue and of the hosts"
        case .submit: "submit or edit requests"
        case .full: "control the whole queue or the service"
        }
    }

    package static func < (left: Access, right: Access) -> Bool { left.rawValue < right.rawValue }
}

/// The sender of a request to the control API.
package struct Caller: Hashable, Sendable {
    /// The user; `nil` if the request came over TCP, or if the kernel does not report the user (``UnmappedIDs``).
    package let user: UInt32?
    package let access: Access

    /// Returns whether the caller may read and edit everything of a stored request or an upload.
    ///
    /// - Parameter owner: The user who submitted it; `nil` if that is not known.
    package func owns(_ owner: UInt32?) -> Bool {
        access == .full || (owner != nil && owner == user)
    }
}

/// The access of the users of a running service and their quotas, which a reload replaces.
package final class AccessRules: Sendable {
    private struct Values {
        var policy: AccessPolicy
        var quota: UserQuota
    }

    private let values: Lock<Values>

    /// - Parameters:
    ///   - policy: Decides what each user may do. Default: root and the user of this process may do everything.
    ///   - quota: The quota of each user without full access. Default: that of ``UserQuota``.
    package init(policy: AccessPolicy = AccessPolicy(), quota: UserQuota = UserQuota()) {
        values = Lock(Values(policy: policy, quota: quota))
    }

    var policy: AccessPolicy { values.withLock { $0.policy } }
    var quota: UserQuota { values.withLock { $0.quota } }

    /// Replaces the policy and the quota. Requests that are being served continue with the earlier ones, except
    /// that an event stream ends before its next event if the access of its caller has changed. If the access was
    /// restored before that, the stream continues: the caller could resume it and receive the same events.
    package func replace(policy: AccessPolicy, quota: UserQuota) {
        values.withLock { $0 = Values(policy: policy, quota: quota) }
    }
}

/// A user of this machine.
package struct SystemUser: Sendable, CustomStringConvertible {
    package let id: uid_t
    /// `nil` if the user has no account. Reads the user database, which may take long on a machine without a network.
    var name: String? { getpwuid(id).map { String(cString: $0.pointee.pw_name) } }

    package init(id: uid_t) {
        self.id = id
    }

    /// Looks a user up by its name in the user database; `nil` if there is none. Like ``name``, this may take long.
    package init?(named name: String) {
        guard let entry = getpwnam(name) else { return nil }
        id = entry.pointee.pw_uid
    }

    /// The user for people: by its name, if it has one. Reads the user database like ``name``.
    package var description: String { name.map { "the user `\($0)`" } ?? "the user \(id)" }
}
