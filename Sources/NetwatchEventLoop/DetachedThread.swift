internal import CNetwatchLinux
internal import Glibc

/// Starts a thread of our own that nobody joins. It runs `body` with every signal blocked, since signals
/// belong to the threads that wait for them, and then ends.
///
/// - Parameter name: The thread's name, as `ps -L` and debuggers show it. Cut to 15 bytes by the kernel.
/// - Parameter stackSize: The size of its stack in bytes, at least 16 KiB. Default `nil`: the system's, usually 8 MiB.
/// - Throws: ``SystemError`` of `pthread_create` (`EAGAIN` when the process may have no more threads).
package func startDetachedThread(
    named name: String,
    stackSize: Int? = nil,
    _ body: @escaping @Sendable () -> Void
) throws(SystemError) {
    ForkedChild.watch()
    let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
    let result = pthread_create(
        &thread,
        &attributes,
        { context in
            Unmanaged<ThreadStart>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        },
        start.toOpaque()
    )
    guard result == 0 else {
        start.release()
        throw SystemError(call: "pthread_create", errno: result)
    }
    pthread_detach(thread)
}

private final class ThreadStart {
    private let name: String
    private let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    func run() {
        netwatch_set_thread_name(name)
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
        body()
    }
}
