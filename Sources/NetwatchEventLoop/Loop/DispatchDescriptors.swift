internal import Dispatch
internal import Glibc

/// The descriptors that libdispatch opens on first use: an epoll instance, an eventfd, another one for the main
/// queue, and a timer for each of its three clocks. libdispatch terminates the process if it cannot open them, so
/// they are opened in advance.
enum DispatchDescriptors {
    private static let count = 6
    private static let reservation = RetriedOnce()

    /// Makes libdispatch open its descriptors, once per process.
    ///
    /// - Throws: ``SystemError`` if too few are left.
    static func reserve() throws(SystemError) {
        try reservation.run { () throws(SystemError) in
            try checkSupply()
            openAll()
        }
    }

    private static func checkSupply() throws(SystemError) {
        var descriptors: [CInt] = []
        defer { for descriptor in descriptors { close(descriptor) } }
        for _ in 0..<count {
            descriptors.append(
                try systemCall("open descriptors for Dispatch") { open("/dev/null", O_RDONLY | O_CLOEXEC) }
            )
        }
    }

    /// The deadlines lie in the future, because past ones need no timer. Timers keep their descriptors after they
    /// have fired.
    private static func openAll() {
        DispatchQueue.main.async {}
        let queue = DispatchQueue.global()
        queue.asyncAfter(deadline: .now() + .milliseconds(1)) {}
        queue.asyncAfter(wallDeadline: .now() + .milliseconds(1)) {}
        // The clock of `ContinuousClock`. Dispatch's Swift API has no name for it; dispatch_time(3) marks it with the
        // highest bit.
        var now = timespec()
        clock_gettime(CLOCK_BOOTTIME, &now)
        let moment = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec) + 1_000_000
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: 1 << 63 | moment)) {}
    }
}
