internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// Stores the cookies of responses and returns those for requests, by the rules of RFC 6265. The cookies are in an
/// `HTTPCookieStorage`, which the program may also read and change.
///
/// Foundation only stores the cookies. Its parser is not used: on Linux it ignores `Max-Age`, accepts `Domain=com`
/// from any host, and splits fields at commas.
///
/// No function of this class may be called on the engine's thread, because `HTTPCookieStorage.shared` rewrites a
/// file in the user's data directory whenever a cookie changes. An ephemeral storage stays in memory.
///
/// There is no list of public suffixes, so `a.co.uk` may set a cookie for `Domain=co.uk`. A domain without an inner
/// dot, such as `com`, is rejected.
final class CookieJar: Sendable {
    /// The maximum number of cookies per domain. RFC 6265 §6.1 requires at least 50; browsers allow 180.
    static let maximumPerDomain = 180
    /// The maximum number of cookies in total. RFC 6265 §6.1 requires at least this many.
    static let maximum = 3000
    /// The maximum number of cookies accepted from a response. The storage may rewrite its file for each of them.
    static let maximumPerResponse = 50
    /// The maximum length of a `Cookie` field in bytes: 50 cookies of the maximum size.
    static let maximumFieldBytes = 50 * SetCookie.maximumBytes

    private let storage: HTTPCookieStorage
    private let policy: HTTPCookie.AcceptPolicy
    /// The times at which replaced cookies were first created, because Foundation resets the time with each
    /// replacement. The lock also makes it atomic to read the storage and then write it.
    private let creationTimes = Mutex<[CookieKey: TimeInterval]>([:])

    /// - Parameters:
    ///   - storage: The storage of the cookies. Its own policy also applies: with `never`, it stores no cookies.
    ///   - policy: The servers whose cookies are accepted.
    init(_ storage: HTTPCookieStorage, policy: HTTPCookie.AcceptPolicy) {
        self.storage = storage
        self.policy = policy
    }

    /// Whether another thread is storing or reading cookies at the moment, and may be waiting for the disk.
    var isBusy: Bool { creationTimes.withLockIfAvailable { _ in } == nil }

    // MARK: Sending

    /// Returns the value of the `Cookie` field for a request; `nil` if no cookie matches.
    ///
    /// Cookies with longer paths come first. If paths are equally long, the older cookie comes first (RFC 6265 §5.4).
    /// Cookies beyond ``maximumFieldBytes`` are omitted.
    func field(for url: URL, at now: Date = Date()) -> String? {
        let (cookies, creationTimes) = creationTimes.withLock { (self.cookies, $0) }
        guard !cookies.isEmpty, let origin = CookieOrigin(url) else { return nil }
        let mine = cookies.filter { $0.isFor(origin, at: now) }.map { DatedCookie($0, creationTimes) }
        return Self.field(of: mine.sorted(by: DatedCookie.isSentBefore).map(\.pair))
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
    ///   - setCookieValues: The values of the response's `Set-Cookie` fields. Values after the first
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
        creationTimes.withLock { creationTimes in
            for cookie in cookies { store(cookie, from: origin, &creationTimes, now) }
            evict(in: cookies, &creationTimes, now)
        }
    }

    private func accepts(from origin: CookieOrigin, _ mainDocumentURL: URL?) -> Bool {
        switch policy {
        case .always: true
        case .never: false
        case .onlyFromMainDocumentDomain:
            mainDocumentURL.map { CookieOrigin($0).map(origin.isSameSite) ?? false } ?? true
        @unknown default: false
        }
    }

    private func store(
        _ cookie: AcceptedCookie,
        from origin: CookieOrigin,
        _ creationTimes: inout [CookieKey: TimeInterval],
        _ now: Date
    ) {
        let stored = cookies
        guard !stored.contains(where: { cookie.wouldHide($0, from: origin) }) else { return }
        let old = stored.first { CookieKey($0) == cookie.key }
        guard !cookie.isExpired(at: now) else {
            if let old { remove(old, &creationTimes) }
            return
        }
        guard let new = HTTPCookie(cookie) else { return }
        // A server may repeat an unchanged cookie in each response. Storing it again would rewrite the file.
        if let old, old.isSame(as: new) { return }
        creationTimes[cookie.key] = old.map { DatedCookie($0, creationTimes).created }
        storage.setCookie(new)
    }

    /// Removes cookies, in this order:
    ///
    /// 1. expired cookies
    /// 2. the oldest cookies of each domain that exceeds ``maximumPerDomain``
    /// 3. the oldest of all cookies beyond ``maximum``
    ///
    /// - Parameter taken: The cookies that were just stored. Only their domains can exceed the limit.
    private func evict(
        in taken: [AcceptedCookie],
        _ creationTimes: inout [CookieKey: TimeInterval],
        _ now: Date
    ) {
        for cookie in cookies where cookie.isExpired(at: now) { remove(cookie, &creationTimes) }
        for domain in Set(taken.map(\.key.bareDomain)) {
            let cookies = cookies.filter { CookieKey($0).bareDomain == domain }
            removeOldest(of: cookies, keeping: Self.maximumPerDomain, &creationTimes)
        }
        removeOldest(of: cookies, keeping: Self.maximum, &creationTimes)
    }

    private func removeOldest(
        of cookies: [HTTPCookie],
        keeping count: Int,
        _ creationTimes: inout [CookieKey: TimeInterval]
    ) {
        guard cookies.count > count else { return }
        let oldestFirst = cookies.map { DatedCookie($0, creationTimes) }.sorted { $0.created < $1.created }
        for aged in oldestFirst.dropLast(count) { remove(aged.cookie, &creationTimes) }
    }

    private func remove(_ cookie: HTTPCookie, _ creationTimes: inout [CookieKey: TimeInterval]) {
        creationTimes[CookieKey(cookie)] = nil
        storage.deleteCookie(cookie)
    }

    private var cookies: [HTTPCookie] { storage.cookies ?? [] }
}

/// A cookie and the time at which it was first created.
private struct DatedCookie {
    let cookie: HTTPCookie
    let created: TimeInterval

    init(_ cookie: HTTPCookie, _ creationTimes: [CookieKey: TimeInterval]) {
        self.cookie = cookie
        created = creationTimes[CookieKey(cookie)] ?? cookie.created
    }

    var pair: String { "\(cookie.name)=\(cookie.value)" }

    static func isSentBefore(_ one: DatedCookie, _ other: DatedCookie) -> Bool {
        let (length, otherLength) = (one.cookie.path.utf8.count, other.cookie.path.utf8.count)
        return length == otherLength ? one.created < other.created : length > otherLength
    }
}
