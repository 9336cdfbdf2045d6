internal import CNetwatchLinux
internal import Glibc
internal import Synchronization

/// Starts the thread of a loop and knows, on that thread, which loop it is.
enum EventLoopThread {
    /// How the new thread tells the starter whether it entered its namespace.
    private final class Launch: Sendable {
        let failure = Mutex<SystemError?>(nil)
        let answered: FileDescriptor

        init() throws(SystemError) {
            answered = FileDescriptor(
                owning: try systemCall("eventfd") { eventfd(0, O_CLOEXEC) }
            )
        }

        func answer(_ failure: SystemError?) {
            self.failure.withLock { $0 = failure }
            eventfd_write(answered.rawValue, 1)
        }

        func waitForAnswer() throws(SystemError) {
            var counter: UInt = 0
            try systemCall("eventfd_read") { eventfd_read(answered.rawValue, &counter) }
            if let failure = failure.withLock({ $0 }) { throw failure }
        }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let result = pthread_key_create(&key, nil)
        precondition(result == 0, "pthread_key_create: \(errnoDescription(result))")
        return key
    }()

    /// The core whose thread the caller runs on.
    static var current: EventLoopCore? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        return Unmanaged<EventLoopCore>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// Starts the thread and waits until it has entered its namespace.
    static func start(
        core: EventLoopCore,
        label: String,
        networkNamespace: String?
    ) throws(SystemError) {
        let launch = try Launch()
        try startDetachedThread(named: label) {
            do throws(SystemError) {
                if let networkNamespace { try enterNetworkNamespace(networkNamespace) }
                launch.answer(nil)
            } catch {
                return launch.answer(error)
            }
            pthread_setspecific(key, Unmanaged.passUnretained(core).toOpaque())
            core.run()
        }
        try launch.waitForAnswer()
    }
}
