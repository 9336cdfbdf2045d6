internal import FoundationNetworking
internal import Synchronization

/// The lock that all jars of a storage share. It makes it atomic to read the storage and then write it.
///
/// Several sessions may have the same storage, each with its own ``CookieJar``.
final class CookieStorageLock: Sendable {
    private struct Entry {
        weak var lock: CookieStorageLock?
        /// The identity of the lock, which is still known while the lock is deinitialized.
        let id: ObjectIdentifier

        init(_ lock: CookieStorageLock) {
            self.lock = lock
            id = ObjectIdentifier(lock)
        }
    }

    /// The locks of the storages that have jars.
    private static let locks = Mutex<[ObjectIdentifier: Entry]>([:])

    let mutex = Mutex<Void>(())
    private let storage: ObjectIdentifier

    private init(_ storage: ObjectIdentifier) {
        self.storage = storage
    }

    deinit {
        let (storage, id) = (storage, ObjectIdentifier(self))
        // Another lock may have replaced this one.
        Self.locks.withLock { locks in
            if locks[storage]?.id == id { locks[storage] = nil }
        }
    }

    /// Returns the lock of a storage. The owner of the lock must retain the storage, because otherwise another storage
    /// may get the same address.
    static func of(_ storage: HTTPCookieStorage) -> CookieStorageLock {
        let storage = ObjectIdentifier(storage)
        return locks.withLock { locks in
            if let lock = locks[storage]?.lock { return lock }
            let lock = CookieStorageLock(storage)
            locks[storage] = Entry(lock)
            return lock
        }
    }
}
