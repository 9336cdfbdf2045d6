internal import Glibc

/// The thread of an ``EventLoop``. It finds its loop through thread-specific data (`pthread_setspecific(3)`).
enum EventLoopThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let result = pthread_key_create(&key, nil)
        precondition(result == 0, "pthread_key_create: \(errnoDescription(result))")
        return key
    }()

    /// The core of the loop on whose thread the caller runs; `nil` on any other thread.
    static var current: EventLoopCore? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        return Unmanaged<EventLoopCore>.fromOpaque(pointer).takeUnretainedValue()
    }

    static func start(core: EventLoopCore, label: String) throws(SystemError) {
        try startDetachedThread(named: label) {
            pthread_setspecific(key, Unmanaged.passUnretained(core).toOpaque())
            core.run()
        }
    }
}
