internal import Glibc
internal import Synchronization

/// The state of a process that is a child of fork(2) and whose parent used netwatch. Such a child cannot use netwatch.
///
/// The child has the memory of its parent's loops, pools and locks, but only one thread. The threads that would work
/// for it do not exist, so a caller would wait for ever. Therefore every operation that needs a thread throws
/// ``SystemError/forked``. This also applies to objects that the child creates, because they use parts that the whole
/// process shares.
///
/// Two kinds of processes are not affected: a child whose parent had not used netwatch before the fork, and a process
/// that has called exec(2).
package enum ForkedChild {
    private static let flag = Atomic(false)

    private static let isWatching: Bool = {
        // Initializes the flag before a fork. If a fork interrupted its initialization on another thread, the child
        // would wait for that thread for ever.
        _ = flag.load(ordering: .relaxed)
        return pthread_atfork(nil, nil, { ForkedChild.flag.store(true, ordering: .relaxed) }) == 0
    }()

    /// Records that this process uses netwatch. Must be called before a thread is started.
    package static func watch() { _ = isWatching }

    /// Whether netwatch cannot be used in this process.
    package static var isCurrent: Bool { flag.load(ordering: .relaxed) }
}

extension SystemError {
    /// The error for using netwatch in a child of fork(2), which does not have the threads of its parent.
    package static let forked = SystemError(call: "use netwatch in a child of fork(2)", errno: ENOTSUP)
}
