internal import Dispatch
internal import Glibc

/// The descriptors that libdispatch opens when they are first needed: an epoll instance, an eventfd, another eventfd
/// for the main queue, and a timer for each of its three clocks.
///
/// libdispatch ends the process if it cannot open them. So netwatch makes libdispatch open them while there are enough.
enum DispatchDescriptors {
    private static let count = 6
    private static let reservation = RetriedOnce()

    /// Makes libdispatch open its descriptors, once per process.
    ///
    /// - Throws: ``SystemError`` with `EMFILE` or `ENFILE` if too few descriptors are free. The next call tries again.
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

    /// Uses each kind of descriptor once. The deadlines are in the future, because libdispatch needs no timer for a
    /// deadline in the past. A timer keeps its descriptor after it has fired.
    private static func openAll() {
        DispatchQueue.main.async {}
        let queue = DispatchQueue.global()
        queue.asyncAfter(deadline: .now() + .milliseconds(1)) {}
        queue.asyncAfter(wallDeadline: .now() + .milliseconds(1)) {}
        // The third clock is `CLOCK_BOOTTIME`, for which Dispatch's Swift API has no name. dispatch_time(3) marks times
        // of this clock with the highest bit.
        let moment = UInt64((BootInstant.now + .milliseconds(1)).nanoseconds)
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: 1 << 63 | moment)) {}
    }
}
