// Compares `Lock` with `Mutex`, which it contains, and with a pthread mutex on the heap. Prints nanoseconds for locking and
// unlocking once: the minimum of seven rounds, in which the three take turns.
internal import Glibc
internal import Synchronization

protocol Counter: AnyObject, Sendable {
    init()
    func add(_ number: Int)
}

final class MutexCounter: Counter {
    private let value = Mutex(0)
    @inline(never) func add(_ number: Int) { value.withLock { $0 &+= number } }
}

final class LockCounter: Counter {
    private let value = Lock(0)
    @inline(never) func add(_ number: Int) { value.withLock { $0 &+= number } }
}

/// Each access to the counter holds the lock, and the pointers never change.
final class PthreadCounter: Counter, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value = 0

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inline(never) func add(_ number: Int) {
        pthread_mutex_lock(mutex)
        value &+= number
        pthread_mutex_unlock(mutex)
    }
}

func uncontended(_ kind: (some Counter).Type, calls: Int) {
    let counter = kind.init()
    for number in 0..<calls { counter.add(number) }
}

func created(_ kind: (some Counter).Type, calls: Int) {
    for number in 0..<calls { kind.init().add(number) }
}

/// Two threads use one lock without a pause.
func contended(_ kind: (some Counter).Type, calls: Int) {
    let counter = kind.init()
    let body: @Sendable () -> Void = { for number in 0..<calls / 2 { counter.add(number) } }
    let threads = [body, body].map { body in
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(body as AnyObject).toOpaque()
        pthread_create(
            &thread,
            nil,
            { argument in
                (Unmanaged<AnyObject>.fromOpaque(argument!).takeRetainedValue() as! @Sendable () -> Void)()
                return nil
            },
            argument
        )
        return thread
    }
    for thread in threads { pthread_join(thread, nil) }
}

func report(_ name: String, calls: Int, _ measured: (any Counter.Type, Int) -> Void) {
    let kinds: [any Counter.Type] = [MutexCounter.self, LockCounter.self, PthreadCounter.self]
    var best = kinds.map { _ in Duration.seconds(3600) }
    for _ in 0..<7 {
        for (index, kind) in kinds.enumerated() {
            best[index] = min(best[index], ContinuousClock().measure { measured(kind, calls) })
        }
    }
    let figures = zip(["Mutex", "Lock", "pthread"], best).map { label, duration in
        let tenths = Int(duration / .nanoseconds(1) / Double(calls) * 10)
        return "\(label) \(tenths / 10).\(tenths % 10)"
    }
    print("\(name), ns: \(figures.joined(separator: ", "))")
}

report("uncontended", calls: 5_000_000) { uncontended($0, calls: $1) }
report("contended by two threads", calls: 1_000_000) { contended($0, calls: $1) }
report("created, locked once and destroyed", calls: 1_000_000) { created($0, calls: $1) }
