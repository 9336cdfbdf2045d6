internal import Foundation
internal import FoundationNetworking

/// The properties of a cookie that are stored.
struct CookieRecord: Codable, Equatable, Sendable {
    var name: String
    var value: String
    /// The domain; see ``CookieKey/domain``.
    var domain: String
    var path: String
    /// `nil` for a cookie that ends with the process.
    var expires: Date?
    var isSecure: Bool
    var isHTTPOnly: Bool
    /// The time at which the cookie was first created, in seconds since 2001; `nil` for a cookie that the program has
    /// stored.
    var created: TimeInterval?

    /// Whether the record is written to a file: it has an expiry date, and JSON can represent this date. A program may
    /// store a cookie whose date is infinite or not a number.
    var isKept: Bool { expires?.timeIntervalSinceReferenceDate.isFinite ?? false }

    /// Whether the record may be used: it is kept, has not expired, and is for no public suffix.
    func isValid(at now: Date) -> Bool {
        guard let expires, expires > now else { return false }
        return !domain.hasPrefix(".") || !PublicSuffixes.contains(String(domain.dropFirst()))
    }
}

extension CookieRecord {
    init(_ cookie: AcceptedCookie, created: TimeInterval) {
        let (key, parsed) = (cookie.key, cookie.parsed)
        self.init(
            name: parsed.name,
            value: parsed.value,
            domain: key.domain,
            path: key.path,
            expires: parsed.expires,
            isSecure: parsed.isSecure,
            isHTTPOnly: parsed.isHTTPOnly,
            created: created
        )
    }
}

/// The contents of a file of cookies: JSON.
struct CookieRecords: Codable {
    /// The version of the format.
    private static let currentVersion = 1

    private var version = CookieRecords.currentVersion
    var cookies: [CookieRecord]

    init(_ cookies: [CookieRecord]) { self.cookies = cookies }

    /// Returns `nil` if the data has another format.
    init?(data: Data) {
        guard let decoded = try? JSONDecoder().decode(CookieRecords.self, from: data),
            decoded.version == Self.currentVersion
        else { return nil }
        self = decoded
    }

    var data: Data {
        get throws { try JSONEncoder().encode(self) }
    }
}
