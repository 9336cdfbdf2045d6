internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A URL, parsed by libcurl's own parser (`libcurl-url(3)`). So the host that netwatch looks up is the host to which
/// libcurl would connect.
struct CurlURL: Equatable {
    let scheme: String
    /// The host as libcurl writes it. An IPv6 address is in brackets.
    let host: String
    let port: Int
    /// The zone of an IPv6 address; empty if the URL has none.
    let zone: String

    /// The scheme, host and port in one string. Only transfers of the same origin share connections.
    let origin: String
    let isSecure: Bool

    /// The host without brackets and zone.
    var bareHost: String {
        guard host.hasPrefix("[") else { return host }
        return String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
    }

    /// The host as an IP address; `nil` if the host is a name, which needs a lookup.
    let literal: IPAddress?

    /// Parses a URL.
    ///
    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    init(parsing text: String) throws(TransferFailure) {
        try Self.checkBytes(of: text)
        let parts = URLParts()
        let result = parts.parse(text)
        guard result == CURLUE_OK else {
            let code = result == CURLUE_UNSUPPORTED_SCHEME ? CURLE_UNSUPPORTED_PROTOCOL : CURLE_URL_MALFORMAT
            throw .refused(
                code,
                "cannot parse the URL: \(String(cString: curl_url_strerror(result)).lowercased())"
            )
        }
        scheme = parts[CURLUPART_SCHEME]
        host = parts[CURLUPART_HOST]
        port = Int(parts[CURLUPART_PORT]) ?? 0
        guard scheme == "http" || scheme == "https" else {
            throw .refused(CURLE_UNSUPPORTED_PROTOCOL, "the URL's scheme is neither http nor https")
        }
        zone = parts[CURLUPART_ZONEID]
        // libcurl ignores the zone. It is part of the origin, because a link-local address may belong to a different
        // machine on each link.
        origin = "\(scheme)://\(host)\(zone.isEmpty ? "" : "%\(zone)"):\(port)"
        isSecure = scheme == "https"
        literal = Self.literal(host, zone: zone)
        guard !host.isEmpty else { throw .refused(CURLE_URL_MALFORMAT, "the URL has no host") }
    }

    /// Checks that the URL is printable ASCII without spaces. libcurl would convert any other host name to punycode and
    /// look that up.
    static func checkBytes(of text: String) throws(TransferFailure) {
        guard text.allBytes({ $0 > 0x20 && $0 < 0x7f }) else {
            throw .refused(
                CURLE_URL_MALFORMAT,
                "the URL contains spaces, control characters or characters other than ASCII"
            )
        }
    }

    /// Parses the host as an IP address. If the zone names an unknown interface, the zone is left out; the failure to
    /// connect then reports the cause.
    private static func literal(_ host: String, zone: String) -> IPAddress? {
        guard host.hasPrefix("[") else { return IPAddress(host) }
        let address = String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
        return IPAddress(zone.isEmpty ? address : "\(address)%\(zone)") ?? IPAddress(address)
    }
}

/// An owner of a `CURLU`, libcurl's parsed URL.
private struct URLParts: ~Copyable {
    private let handle = curl_url()

    deinit { curl_url_cleanup(handle) }

    func parse(_ text: String) -> CURLUcode {
        curl_url_set(handle, CURLUPART_URL, text, 0)
    }

    subscript(part: CURLUPart) -> String {
        var text: UnsafeMutablePointer<CChar>?
        defer { curl_free(text) }
        guard curl_url_get(handle, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else {
            return ""
        }
        return String(cString: text)
    }
}

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
