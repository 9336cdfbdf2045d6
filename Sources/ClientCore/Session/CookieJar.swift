internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// Takes cookies from responses and gives them to requests, as RFC 6265 has it, over a `HTTPCookieStorage`
/// that the program may fill and read as well.
///
/// Foundation only keeps the cookies. On Linux it does not read `Max-Age`, takes `Domain=com` from anyone,
/// and breaks fields at commas.
///
/// `HTTPCookieStorage.shared` writes a file in the user's data directory, as a whole, whenever a cookie
/// changes. So nothing here may be called on the engine's thread. An ephemeral storage stays in memory.
///
/// Without a list of public suffixes `Domain=co.uk` is taken from `a.co.uk`; what has no dot inside is not.
final class CookieJar: Sendable {
    /// RFC 6265 §6.1 wants room for 50 cookies of a domain; 180 is what browsers have.
    static let maximumPerDomain = 180
    /// In all, as RFC 6265 §6.1 wants.
    static let maximum = 3000
    /// Of one response. The storage may write a file for each.
    static let maximumPerResponse = 50
    /// Of one `Cookie` field: 50 cookies of the largest size.
    static let maximumFieldBytes = 50 * SetCookie.maximumBytes

    private let storage: HTTPCookieStorage
    private let policy: HTTPCookie.AcceptPolicy
    /// When cookies that were replaced since were first set: Foundation's creation time starts anew with
    /// each replacement. Under its lock the storage is read and written in one go.
    private let births = Mutex<[CookieKey: TimeInterval]>([:])

    /// - Parameters:
    ///   - storage: Where cookies are kept. Its own policy is heeded as well: it takes none under `never`.
    ///   - policy: Which cookies are taken.
    init(_ storage: HTTPCookieStorage, policy: HTTPCookie.AcceptPolicy) {
        self.storage = storage
        self.policy = policy
    }

    /// Whether cookies are being taken just now, and perhaps written to a disk.
    var isBusy: Bool { births.withLockIfAvailable { _ in } == nil }

    // MARK: Giving

    /// The `Cookie` field of a request: longer paths first, among equals the older cookie
    /// (RFC 6265 §5.4). `nil` when there is no cookie for it.
    ///
    /// Cookies beyond ``maximumFieldBytes`` are left out.
    func field(for url: URL, at now: Date = Date()) -> String? {
        let (cookies, births) = births.withLock { (self.cookies, $0) }
        guard !cookies.isEmpty, let origin = CookieOrigin(url) else { return nil }
        let mine = cookies.filter { $0.isFor(origin, at: now) }.map { AgedCookie($0, births) }
        return Self.field(of: mine.sorted(by: AgedCookie.isSentBefore).map(\.pair))
    }

    private static func field(of pairs: [String]) -> String? {
        var bytes = 0
        let sent = pairs.prefix { pair in
            bytes += pair.utf8.count + 2
            return bytes <= maximumFieldBytes
        }
        return sent.isEmpty ? nil : sent.joined(separator: "; ")
    }

    // MARK: Taking

    /// Keeps the cookies of a response. What the server may not set is dropped without a word.
    ///
    /// - Parameters:
    ///   - setCookieValues: The values of the response's `Set-Cookie` fields, one by one. Those after the
    ///     first ``maximumPerResponse`` are dropped.
    ///   - url: Where the response came from.
    ///   - mainDocumentURL: What `onlyFromMainDocumentDomain` is about. `nil` counts as `url`'s own.
    func take(_ setCookieValues: [String], from url: URL, mainDocumentURL: URL?, at now: Date = Date()) {
        guard !setCookieValues.isEmpty, let origin = CookieOrigin(url), accepts(from: origin, mainDocumentURL)
        else { return }
        let cookies = setCookieValues.prefix(Self.maximumPerResponse)
            .compactMap { SetCookie($0, at: now) }
            .compactMap { AcceptedCookie($0, from: origin) }
        guard !cookies.isEmpty else { return }
        births.withLock { births in
            for cookie in cookies { keep(cookie, from: origin, &births, now) }
            makeRoom(in: cookies, &births, now)
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

    private func keep(
        _ cookie: AcceptedCookie,
        from origin: CookieOrigin,
        _ births: inout [CookieKey: TimeInterval],
        _ now: Date
    ) {
        let stored = cookies
        guard !stored.contains(where: { cookie.wouldHide($0, from: origin) }) else { return }
        let old = stored.first { CookieKey($0) == cookie.key }
        guard !cookie.isExpired(at: now) else {
            if let old { remove(old, &births) }
            return
        }
        guard let new = HTTPCookie(cookie) else { return }
        // A server that repeats its cookie with each response need not cost a file each time.
        if let old, old.isSame(as: new) { return }
        births[cookie.key] = old.map { AgedCookie($0, births).birth }
        storage.setCookie(new)
    }

    /// Expired cookies go first, then the oldest of a domain that has too many, then the oldest of all.
    private func makeRoom(
        in taken: [AcceptedCookie],
        _ births: inout [CookieKey: TimeInterval],
        _ now: Date
    ) {
        for cookie in cookies where cookie.isExpired(at: now) { remove(cookie, &births) }
        for domain in Set(taken.map(\.key.bareDomain)) {
            let cookies = cookies.filter { CookieKey($0).bareDomain == domain }
            removeOldest(of: cookies, keeping: Self.maximumPerDomain, &births)
        }
        removeOldest(of: cookies, keeping: Self.maximum, &births)
    }

    private func removeOldest(
        of cookies: [HTTPCookie],
        keeping count: Int,
        _ births: inout [CookieKey: TimeInterval]
    ) {
        guard cookies.count > count else { return }
        let oldestFirst = cookies.map { AgedCookie($0, births) }.sorted { $0.birth < $1.birth }
        for aged in oldestFirst.dropLast(count) { remove(aged.cookie, &births) }
    }

    private func remove(_ cookie: HTTPCookie, _ births: inout [CookieKey: TimeInterval]) {
        births[CookieKey(cookie)] = nil
        storage.deleteCookie(cookie)
    }

    private var cookies: [HTTPCookie] { storage.cookies ?? [] }
}

/// A cookie and when it was first set.
private struct AgedCookie {
    let cookie: HTTPCookie
    let birth: TimeInterval

    init(_ cookie: HTTPCookie, _ births: [CookieKey: TimeInterval]) {
        self.cookie = cookie
        birth = births[CookieKey(cookie)] ?? cookie.created
    }

    var pair: String { "\(cookie.name)=\(cookie.value)" }

    static func isSentBefore(_ one: AgedCookie, _ other: AgedCookie) -> Bool {
        let (length, otherLength) = (one.cookie.path.utf8.count, other.cookie.path.utf8.count)
        return length == otherLength ? one.birth < other.birth : length > otherLength
    }
}
