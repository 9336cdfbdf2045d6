/// A cache of parsed URLs, by origin (scheme, host and port).
///
/// A program sends requests to few servers, and parsing a URL with libcurl takes a tenth of the time of a small
/// transfer.
struct OriginCache {
    /// The maximum number of entries. When it is reached, the cache is emptied.
    private static let limit = 256
    /// The maximum length in bytes of an authority that is cached: a host name (RFC 1035 §2.3.4), a colon and a port.
    private static let maximumAuthorityLength = 255 + 6

    // The keys are substrings, so that the origin within the text of a URL can be looked up without a copy.
    private var cached: [Substring: CurlURL] = [:]

    /// Returns the parsed URL; from the cache if the cache has a URL of the same origin.
    ///
    /// - Throws: ``TransferFailure`` as ``CurlURL/init(parsing:)`` does. If the origin is cached, an error in the path
    ///   is not detected here. libcurl reports it when it receives the URL.
    mutating func url(_ text: String) throws(TransferFailure) -> CurlURL {
        guard let origin = Self.plainOrigin(of: text) else { return try CurlURL(parsing: text) }
        if let url = cached[origin] {
            try CurlURL.checkBytes(of: text)
            return url
        }
        let url = try CurlURL(parsing: text)
        if cached.count == Self.limit { cached = [:] }
        // A copy, because the substring would retain the whole URL, including its path.
        cached[Substring(String(origin))] = url
        return url
    }

    /// Returns the scheme, host and port of a URL as written.
    ///
    /// Returns `nil` if the authority contains anything else, for example an escape, which changes its meaning, or a
    /// user name and password, which must not be stored.
    private static func plainOrigin(of text: String) -> Substring? {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        // The authority must not be empty: libcurl ignores a third slash and takes the text after it for the host.
        guard (1...maximumAuthorityLength).contains(authority.count), authority.allSatisfy(isPlain) else {
            return nil
        }
        return text[..<authority.endIndex]
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
