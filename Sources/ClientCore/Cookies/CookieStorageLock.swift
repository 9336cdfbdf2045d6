internal import FoundationNetworking
internal import NetwatchEventLoop

/// The lock that all jars of a storage share. It makes it atomic to read the storage and then write it.
///
/// Several sessions may have the same storage, each with its own ``CookieJar``.
final class CookieStorageLock: Sendable {
    private struct Entry {
        let lock = CookieStorageLock()
        var users = 0
    }

    /// The locks of the storages that have jars.
    private static let entries = Lock<[ObjectIdentifier: Entry]>([:])

    let mutex = Lock<Void>(())

    private init() {}

    /// Returns the lock of a storage. The caller must retain the storage until it has called ``release(_:)``, because
    /// otherwise another storage may get the same address.
    static func retain(_ storage: HTTPCookieStorage) -> CookieStorageLock {
        let id = ObjectIdentifier(storage)
        return entries.withLock { entries in
            var entry = entries[id] ?? Entry()
            entry.users += 1
            entries[id] = entry
            return entry.lock
        }
    }

    /// Ends the use that ``retain(_:)`` began.
    static func release(_ storage: HTTPCookieStorage) {
        let id = ObjectIdentifier(storage)
        entries.withLock { entries in
            guard var entry = entries.removeValue(forKey: id) else { return }
            entry.users -= 1
            if entry.users > 0 { entries[id] = entry }
        }
    }
}
