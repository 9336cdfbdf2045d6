/// A cache of libcurl's parsing results for the origins of URLs.
///
/// A program talks to few servers, and parsing takes a tenth of the time of a small transfer.
struct OriginCache {
    /// The maximum number of entries. When it is reached, the cache is emptied.
    private static let limit = 256
    /// The maximum length of a cached authority in bytes: a name (RFC 1035 §2.3.4) and a port.
    private static let maximumAuthorityLength = 255 + 6

    private var cached: [String: CurlURL] = [:]

    /// Returns the parsed URL.
    ///
    /// - Throws: ``TransferFailure`` as ``CurlURL/init(parsing:)`` does. If the origin is cached, libcurl reports
    ///   errors in the path only when it receives the URL.
    mutating func url(_ text: String) throws(TransferFailure) -> CurlURL {
        guard let origin = Self.plainOrigin(of: text) else { return try CurlURL(parsing: text) }
        if let url = cached[origin] {
            try CurlURL.checkBytes(of: text)
            return url
        }
        let url = try CurlURL(parsing: text)
        if cached.count == Self.limit { cached = [:] }
        cached[origin] = url
        return url
    }

    /// Returns the scheme, host and port as written. Returns `nil` if the authority contains anything else, which could
    /// change its meaning or must not be stored (a user name and password).
    private static func plainOrigin(of text: String) -> String? {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        // libcurl ignores a third slash and takes the following text for the host, so the authority must not be empty.
        guard (1...maximumAuthorityLength).contains(authority.count), authority.allSatisfy(isPlain) else {
            return nil
        }
        return String(text[..<authority.endIndex])
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
            UInt8(ascii: "-"), UInt8(ascii: ":"):
            true
        default: false
        }
    }
}
