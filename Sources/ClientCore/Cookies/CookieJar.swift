internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop

/// Stores the cookies of responses and returns those for requests, by the rules of RFC 6265. The cookies are in an
/// `HTTPCookieStorage`, which the program may also read and change.
///
/// Foundation only stores the cookies. Its parser is not used: on Linux it ignores `Max-Age`, accepts `Domain=com`
/// from any host, and splits fields at commas.
///
/// No function of this class may be called on the engine's thread, because a storage with a ``CookieFile`` or for a
/// group container rewrites its file whenever a cookie changes. Other storages stay in memory.
///
/// A cookie for a public suffix, such as `com` or `co.uk`, is rejected; see ``PublicSuffixes``.
final class CookieJar: Sendable {
    /// The maximum number of cookies per domain. RFC 6265 §6.1 requires at least 50; browsers allow 180.
    static let maximumPerDomain = 180
    /// The maximum number of cookies in total. RFC 6265 §6.1 requires at least this many.
    static let maximum = 3000
    /// The maximum number of cookies accepted from a response. The storage may rewrite its file for each of them.
    static let maximumPerResponse = 50
    /// The maximum length of a `Cookie` field in bytes: 50 cookies of the maximum size.
    static let maximumFieldBytes = 50 * SetCookie.maximumBytes

    /// The storage that replaces `HTTPCookieStorage.shared`. All sessions share it, and it stays in memory.
    ///
    /// Foundation writes the shared storage to a file that other users can read, and that all programs in the same
    /// directory share. Each `.default` configuration has the shared storage, whether the program wants such a file or
    /// not.
    private static let shared = URLSessionConfiguration.ephemeral.httpCookieStorage

    let storage: HTTPCookieStorage
    /// The storage of the program. If its accept policy is `never`, no cookies are stored; other values have no effect.
    /// The policy is read without synchronization, so the program must set it before requests run.
    private let configured: HTTPCookieStorage
    private let policy: HTTPCookie.AcceptPolicy
    /// The file of the storage; `nil` if it has none.
    private let file: CookieFile?
    let lock: CookieStorageLock

    /// - Parameters:
    ///   - storage: The storage of the cookies; `HTTPCookieStorage.shared` selects a storage in memory. If its own
    ///     policy is `never`, no cookies are stored. The program must set that policy before requests run.
    ///   - policy: The servers whose cookies are accepted.
    convenience init(_ storage: HTTPCookieStorage, policy: HTTPCookie.AcceptPolicy) {
        let replacement = storage === HTTPCookieStorage.shared ? Self.shared : nil
        self.init(replacement ?? storage, for: storage, policy: policy, file: CookieFile.file(of: storage))
    }

    /// Creates a jar whose cookies are in another storage than the one that the program has configured.
    init(
        _ storage: HTTPCookieStorage,
        for configured: HTTPCookieStorage,
        policy: HTTPCookie.AcceptPolicy,
        file: CookieFile? = nil
    ) {
        self.storage = storage
        self.configured = configured
        self.policy = policy
        self.file = file
        lock = .retain(storage)
    }

    deinit { CookieStorageLock.release(storage) }

    /// Whether another thread is storing or reading cookies of the storage at the moment, and may be waiting for the
    /// disk.
    var isBusy: Bool { lock.mutex.withLockIfAvailable { _ in } == nil }

    // MARK: Sending

    /// Returns the value of the `Cookie` field for a request, as an ``ExactText``; `nil` if no cookie matches.
    ///
    /// Cookies with longer paths come first. If paths are equally long, the older cookie comes first (RFC 6265 §5.4).
    /// Cookies beyond ``maximumFieldBytes`` are omitted.
    func field(for url: URL, at now: Date = Date()) -> String? {
        let cookies = lock.mutex.withLock { _ in self.cookies }
        guard !cookies.isEmpty, let origin = CookieOrigin(url) else { return nil }
        let mine = cookies.filter { $0.isFor(origin, at: now) }.sorted { $0.isSentBefore($1) }
        return Self.field(of: mine.map(\.exactPair))
    }

    private static func field(of pairs: [String]) -> String? {
        var bytes = 0
        let sent = pairs.prefix { pair in
            bytes += pair.utf8.count + 2
            return bytes <= maximumFieldBytes
        }
        return sent.isEmpty ? nil : sent.joined(separator: "; ")
    }

    // MARK: Storing

    /// Stores the cookies of a response. Cookies that the server is not allowed to set are silently dropped.
    ///
    /// - Parameters:
    ///   - setCookieValues: The values of the response's `Set-Cookie` fields, as ``ExactText``. Values after the first
    ///     ``maximumPerResponse`` are dropped.
    ///   - url: The URL of the response.
    ///   - mainDocumentURL: The main document for the policy `onlyFromMainDocumentDomain`; `nil` accepts any `url`.
    ///   - now: The current time. Tests pass another.
    func store(_ setCookieValues: [String], from url: URL, mainDocumentURL: URL?, at now: Date = Date()) {
        guard !setCookieValues.isEmpty, let origin = CookieOrigin(url), accepts(from: origin, mainDocumentURL)
        else { return }
        let cookies = setCookieValues.prefix(Self.maximumPerResponse)
            .compactMap { SetCookie($0, at: now) }
            .compactMap { AcceptedCookie($0, from: origin) }
        guard !cookies.isEmpty else { return }
        let isChanged = lock.mutex.withLock { _ in
            let changes = cookies.map { store($0, from: origin, now) }
            return evict(in: cookies, now) || changes.contains(true)
        }
        // A response does not fail because of its cookies. They are in memory, and the next change writes all of them.
        if isChanged { try? file?.save() }
    }

    private func accepts(from origin: CookieOrigin, _ mainDocumentURL: URL?) -> Bool {
        guard configured.cookieAcceptPolicy != .never else { return false }
        return switch policy {
        case .always: true
        case .never: false
        case .onlyFromMainDocumentDomain:
            mainDocumentURL.map { CookieOrigin($0).map(origin.isSameSite) ?? false } ?? true
        @unknown default: false
        }
    }

    /// Returns whether the storage was changed.
    private func store(
        _ cookie: AcceptedCookie,
        from origin: CookieOrigin,
        _ now: Date
    ) -> Bool {
        let stored = cookies
        guard !stored.contains(where: { cookie.wouldHide($0, from: origin) }) else { return false }
        let old = stored.first { CookieKey($0) == cookie.key }
        guard !cookie.isExpired(at: now) else {
            if let old { storage.deleteCookie(old) }
            return old != nil
        }
        // A new cookie is newer than all others, by a microsecond if necessary, even if the clock was set back.
        let newest = stored.lazy.map(\.created).max() ?? 0
        let created = old?.created ?? max(now.timeIntervalSinceReferenceDate, newest + 1e-6)
        guard let new = HTTPCookie(CookieRecord(cookie, created: created)) else { return false }
        // A server may repeat an unchanged cookie in each response. Storing it again would rewrite the file.
        if let old, old.isSame(as: new) { return false }
        storage.setCookie(new)
        return true
    }

    /// Removes cookies, in this order:
    ///
    /// 1. expired cookies
    /// 2. the oldest cookies of each domain that exceeds ``maximumPerDomain``
    /// 3. the oldest of all cookies beyond ``maximum``
    ///
    /// - Parameter taken: The cookies that were just stored. Only their domains can exceed the limit.
    /// - Returns: Whether cookies were removed.
    private func evict(in taken: [AcceptedCookie], _ now: Date) -> Bool {
        var kept = cookies
        var evicted = kept.filter { $0.isExpired(at: now) }
        kept.removeAll { $0.isExpired(at: now) }
        for domain in Set(taken.map(\.key.bareDomain)) {
            evicted += kept.removeOldest(keeping: Self.maximumPerDomain) {
                CookieKey($0).bareDomain == domain
            }
        }
        evicted += kept.removeOldest(keeping: Self.maximum) { _ in true }
        for cookie in evicted { storage.deleteCookie(cookie) }
        return !evicted.isEmpty
    }

    private var cookies: [HTTPCookie] { storage.cookies ?? [] }
}

extension [HTTPCookie] {
    /// Removes and returns the oldest of the cookies that match, so that at most `count` of them remain.
    fileprivate mutating func removeOldest(
        keeping count: Int,
        where matches: (HTTPCookie) -> Bool
    ) -> [HTTPCookie] {
        let matching = filter(matches)
        guard matching.count > count else { return [] }
        let oldest = matching.sorted { $0.created < $1.created }.dropLast(count)
        let removed = Set(oldest.map { ObjectIdentifier($0) })
        removeAll { removed.contains(ObjectIdentifier($0)) }
        return Array(oldest)
    }
}

extension HTTPCookie {
    /// Whether this cookie comes before another one in a `Cookie` field; see ``CookieJar/field(for:at:)``.
    fileprivate func isSentBefore(_ other: HTTPCookie) -> Bool {
        let (length, otherLength) = (path.utf8.count, other.path.utf8.count)
        return length == otherLength ? created < other.created : length > otherLength
    }
}

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
