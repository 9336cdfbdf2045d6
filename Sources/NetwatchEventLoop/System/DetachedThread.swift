internal import CNetwatchLinux
internal import Glibc

/// Starts a detached thread that runs `body` and exits. The thread blocks all signals, so that the program's own
/// threads handle them.
///
/// - Parameter name: The thread's name, as shown by `ps -L` and debuggers. The kernel truncates it to 15 bytes.
/// - Parameter stackSize: The size of the stack in bytes, at least 16 KiB. Default `nil`: the size that the system
///   chooses, usually 8 MiB.
/// - Throws: ``SystemError`` of `pthread_create`, with `EAGAIN` if the process may not have more threads.
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
