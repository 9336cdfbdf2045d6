public import Synchronization

/// A mutual exclusion lock and the value that it protects. May be used by any thread, and in asynchronous functions.
///
/// This type is `Mutex` behind a call that is never inlined. On Linux, `Mutex` stores the id of the locking thread, which
/// it reads from a thread-local variable, and it is always inlined. When an asynchronous function locks twice, the
/// optimizer of Swift 6.3 computes the address of that variable once, and keeps it while the function is suspended. If
/// another thread resumes the function, the lock stores the id of the first thread, and unlocking ends the process.
/// `scripts/check-optimized` finds such addresses in a built program. Concurrent readers of the control socket ended an
/// optimized service in this way.
///
/// Locking and unlocking takes 7.3 ns instead of 6.7, and an object with a lock that is created, locked once and
/// destroyed 40 ns instead of 31. A `pthread_mutex_t` would also be safe, but needs its own memory for each lock: 10.8
/// and 64 ns (`scripts/bench locks`).
///
/// The type is public only because the compiler specializes inlinable generic functions of other modules only if they are
/// public. A call that is not specialized is much slower.
public struct Lock<Value: ~Copyable>: ~Copyable {
    @usableFromInline let mutex: Mutex<Value>

    /// Creates an unlocked lock for a value.
    @inlinable
    public init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Waits for the lock, and calls `body` with the value while it is locked. `body` must not lock the same lock, which
    /// ends the process.
    @inlinable @inline(never)
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }

    /// Calls `body` with the value while it is locked, or returns `nil` if a thread has locked it.
    @inlinable @inline(never)
    public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        try mutex.withLockIfAvailable(body)
    }
}

extension Lock: Sendable where Value: ~Copyable {}
