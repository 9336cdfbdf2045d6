internal import CNetwatchLinux
internal import Glibc

/// Starts a thread of our own that nobody joins. It runs `body` with every signal blocked, since signals
/// belong to the threads that wait for them, and then ends.
///
/// - Parameter name: The thread's name, as `ps -L` and debuggers show it. Cut to 15 bytes by the kernel.
/// - Throws: ``SystemError`` of `pthread_create` (`EAGAIN` when the process may have no more threads).
package func startDetachedThread(
    named name: String,
    _ body: @escaping @Sendable () -> Void
) throws(SystemError) {
    let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
    var thread = pthread_t()
    let result = pthread_create(
        &thread,
        nil,
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
