internal import Glibc
internal import Synchronization

/// The number of times that this process was forked from one that used netwatch.
///
/// A child of fork(2) has only one thread. The loops, pools and locks of its parent exist in memory, but without
/// their threads, so a caller would wait forever. Objects that depend on threads record the generation in which they
/// were created, and refuse to work in another one. A child whose parent had not used netwatch, or that calls
/// exec(2), is not affected.
package enum ForkGeneration {
    private static let forks = Atomic<Int>(0)

    private static let isCounting: Bool = {
        // Initialized before the first fork. In the child, the thread that initializes it may no longer exist.
        _ = forks.load(ordering: .relaxed)
        return pthread_atfork(nil, nil, { ForkGeneration.forks.add(1, ordering: .relaxed) }) == 0
    }()

    /// The number of forks between the first use of netwatch and this process.
    package static var current: Int {
        _ = isCounting
        return forks.load(ordering: .relaxed)
    }
}

extension SystemError {
    /// The error for using a thread, a pool or a store of a parent process.
    package static let forked = SystemError(call: "use netwatch in a child of fork(2)", errno: ENOTSUP)
}
