internal import Dispatch
internal import Glibc
internal import Synchronization

/// The descriptors that libdispatch opens when it first needs them: an epoll instance, an eventfd, another for the main
/// queue, and a timer for each of its three clocks. Where there is none left it ends the process, so they are opened while there are some.
enum DispatchDescriptors {
    private static let count = 6
    private static let isReserved = Mutex(false)

    /// Lets libdispatch open its descriptors, once for each process.
    ///
    /// - Throws: ``SystemError`` when there are too few left.
    static func reserve() throws(SystemError) {
        let result = isReserved.withLock { isReserved -> Result<Void, SystemError> in
            guard !isReserved else { return .success(()) }
            return Result { () throws(SystemError) in
                try checkRoom()
                openAll()
                isReserved = true
            }
        }
        try result.get()
    }

    private static func checkRoom() throws(SystemError) {
        var descriptors: [CInt] = []
        defer { for descriptor in descriptors { close(descriptor) } }
        for _ in 0..<count {
            descriptors.append(
                try systemCall("open descriptors for Dispatch") { open("/dev/null", O_RDONLY | O_CLOEXEC) }
            )
        }
    }

    /// A moment that has passed needs no timer. Timers that have fired keep their descriptor.
    private static func openAll() {
        DispatchQueue.main.async {}
        let queue = DispatchQueue.global()
        queue.asyncAfter(deadline: .now() + .milliseconds(1)) {}
        queue.asyncAfter(wallDeadline: .now() + .milliseconds(1)) {}
        // The clock of `ContinuousClock`, for which Dispatch's Swift interface has no name: dispatch_time(3) marks it by
        // the highest bit.
        var now = timespec()
        clock_gettime(CLOCK_BOOTTIME, &now)
        let moment = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec) + 1_000_000
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: 1 << 63 | moment)) {}
    }
}
