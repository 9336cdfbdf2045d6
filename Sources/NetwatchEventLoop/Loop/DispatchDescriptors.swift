internal import CNetwatchLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

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

/// A watch of a descriptor that ends when this object is released. The descriptor stays open until then.
package final class DescriptorWatch: Sendable {
    private let loop: EventLoop
    private let owner: any AnyObject & Sendable
    private let registration: EventLoop.Registration

    /// Begins to watch a descriptor; see ``EventLoop/register(_:for:handler:)``.
    ///
    /// - Parameter owner: The object that closes the descriptor in its `deinit`. The watch retains it.
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package init(
        loop: EventLoop,
        _ descriptor: CInt,
        of owner: any AnyObject & Sendable,
        for interest: EventLoop.Interest,
        handler: @escaping @Sendable (EventLoop.Readiness) -> Void
    ) throws(SystemError) {
        self.loop = loop
        self.owner = owner
        registration = try loop.register(descriptor, for: interest, handler: handler)
    }

    deinit {
        loop.unregister(registration)
    }
}

/// An initialization that runs until it has succeeded once. May be used by any thread.
package final class RetriedOnce: Sendable {
    private let lock = Lock(())
    private let isDone = Atomic(false)

    package init() {}

    /// Whether the initialization has succeeded.
    package var hasSucceeded: Bool { isDone.load(ordering: .acquiring) }

    /// Runs the initialization if it has not succeeded yet. After a failure, the next call tries again. Concurrent
    /// callers wait until the running call has ended.
    package func run(_ initialize: () throws(SystemError) -> Void) throws(SystemError) {
        guard !hasSucceeded else { return }
        let result = lock.withLock { _ -> Result<Void, SystemError> in
            guard !isDone.load(ordering: .relaxed) else { return .success(()) }
            return Result { () throws(SystemError) in
                try initialize()
                isDone.store(true, ordering: .releasing)
            }
        }
        try result.get()
    }
}

/// The network namespace in which a component opens its sockets.
///
/// A socket stays in the namespace of the thread that opened it. So a thread enters the namespace only to open a socket
/// or to look up a name. It must not submit work or start a thread meanwhile.
///
/// A thread that stayed in the namespace would pass it on to new threads. Dispatch starts workers from any thread that
/// submits work, and a worker keeps that thread's namespace until it ends. The program's callbacks would then open
/// their own sockets in the wrong namespace.
package final class SocketNamespace: Sendable {
    private let target: FileDescriptor
    private let home: FileDescriptor
    private let path: String

    /// Opens a namespace, and checks that the calling thread may enter it.
    ///
    /// - Parameter path: The path of the namespace, such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    /// - Throws: ``SystemError`` of `open` or `setns`. `setns` fails with `EPERM` without `CAP_SYS_ADMIN` over this
    ///   namespace and over the calling thread's namespace, and with `EINVAL` if the file is not a network namespace.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        home = try FileDescriptor.opening("/proc/thread-self/ns/net")
        target = try FileDescriptor.opening(path)
        try run { () throws(SystemError) in }
    }

    /// Runs `body` on the calling thread inside the namespace. Other threads are not affected. Paths of files are not
    /// affected either, because the mount namespace does not change.
    ///
    /// - Throws: ``SystemError`` of `setns`, and the errors of `body`.
    package func run<Result: ~Copyable>(_ body: () throws(SystemError) -> Result) throws(SystemError)
        -> Result
    {
        // This checks that the thread will be able to return to its own namespace.
        try enter(home, "/proc/thread-self/ns/net")
        try enter(target, path)
        defer { leave() }
        return try body()
    }

    /// Returns to the original namespace. Ends the process on a failure, because the thread would otherwise continue in
    /// the wrong namespace.
    private func leave() {
        do throws(SystemError) {
            try enter(home, "/proc/thread-self/ns/net")
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private func enter(_ namespace: borrowing FileDescriptor, _ path: String) throws(SystemError) {
        let descriptor = namespace.rawValue
        try systemCall("setns \(path)") { setns(descriptor, CLONE_NEWNET) }
    }
}

/// A detector of steps of the wall clock. Its descriptor becomes readable when `CLOCK_REALTIME` is set, and when the
/// machine resumes from a suspension, which also sets that clock.
///
/// It is a timer that never expires (`TFD_TIMER_CANCEL_ON_SET` of timerfd_create(2)).
package final class ClockStepTimer: Sendable {
    private let timer: FileDescriptor

    /// Creates and arms the timer.
    ///
    /// - Throws: ``SystemError`` of `timerfd_create` (`EMFILE`) or `timerfd_settime`.
    package init() throws(SystemError) {
        let flags = O_CLOEXEC | O_NONBLOCK
        let descriptor = try systemCall("timerfd_create") { timerfd_create(CLOCK_REALTIME, flags) }
        timer = FileDescriptor(owning: descriptor)
        try arm()
    }

    package var descriptor: CInt {
        timer.rawValue
    }

    /// Clears the reported event and arms the timer for the next one. To clear the event, this method reads the timer,
    /// which fails with `ECANCELED`.
    ///
    /// - Throws: ``SystemError`` of `timerfd_settime`.
    package func rearm() throws(SystemError) {
        var expirations: UInt64 = 0
        _ = read(timer.rawValue, &expirations, MemoryLayout.size(ofValue: expirations))
        try arm()
    }

    private func arm() throws(SystemError) {
        var never = netwatch_itimerspec()
        never.seconds = .max
        let flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
        let result = timerfd_settime(timer.rawValue, flags, &never, nil)
        // ECANCELED means that the clock was set during this call. The timer is armed anyway.
        if result != 0, errno != ECANCELED { throw SystemError(call: "timerfd_settime", errno: errno) }
    }
}
