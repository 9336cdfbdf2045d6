internal import Glibc
internal import Synchronization

/// Whether this process is a child of fork(2) whose parent used netwatch.
///
/// Such a child has one thread only. Loops, pools and locks of its parent are there in memory, but the threads that
/// would work on them are not, so a caller would wait for ever. Everything that needs a thread fails there instead,
/// also what the child makes itself: parts of it are shared by the whole process. A child whose parent has not used
/// netwatch before is a process like any other, and so is one that calls exec(2).
package enum ForkedChild {
    private static let flag = Atomic(false)

    private static let isWatching: Bool = {
        // Made before the first fork, not in the child, where its maker may be gone.
        _ = flag.load(ordering: .relaxed)
        return pthread_atfork(nil, nil, { ForkedChild.flag.store(true, ordering: .relaxed) }) == 0
    }()

    /// Notes that this process uses netwatch. Called by what starts threads, before it does.
    package static func watch() { _ = isWatching }

    /// Whether netwatch cannot be used in this process.
    package static var isCurrent: Bool { flag.load(ordering: .relaxed) }
}

extension SystemError {
    /// A thread, a pool or a store was used in a child process, which has none of its parent's threads.
    package static let forked = SystemError(call: "use netwatch in a child of fork(2)", errno: ENOTSUP)
}
