internal import NetwatchEventLoop
package import OfflineQueue

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
