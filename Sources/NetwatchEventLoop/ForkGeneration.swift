internal import Glibc
internal import Synchronization

/// How often this process was forked off from one that used netwatch.
///
/// A child of fork(2) has one thread only. Loops, pools and locks of its parent are there in memory, but the threads that
/// would work on them are not, so whatever asked them for something would wait for ever. Whoever owns such a thing notes
/// the generation it was made in, and refuses to be used in another. A child whose parent has not used netwatch before
/// is a process like any other, and so is one that calls exec(2).
package enum ForkGeneration {
    private static let forks = Atomic<Int>(0)

    private static let isCounting: Bool = {
        // Made before the first fork, not in the child, where its maker may be gone.
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
    /// A thread, a pool or a store of a parent process was used.
    package static let forked = SystemError(call: "use netwatch in a child of fork(2)", errno: ENOTSUP)
}
