internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A URL as parsed by libcurl's own parser (`libcurl-url(3)`), so that the host that is looked up is also the host that
/// is connected to.
struct CurlURL: Equatable {
    let scheme: String
    /// The host in the form that `CURLOPT_RESOLVE` uses.
    let host: String
    let port: Int

    /// The scheme, host and port. Connections are shared only within an origin.
    let origin: String
    let isSecure: Bool

    /// The host without brackets and zone.
    var bareHost: String {
        guard host.hasPrefix("[") else { return host }
        return String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
    }

    /// The host as an IP address; `nil` if it is a name, which needs a lookup.
    let literal: IPAddress?

    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    init(parsing text: String) throws(TransferFailure) {
        try Self.checkBytes(of: text)
        let parts = URLParts()
        let result = parts.parse(text)
        guard result == CURLUE_OK else {
            let code = result == CURLUE_UNSUPPORTED_SCHEME ? CURLE_UNSUPPORTED_PROTOCOL : CURLE_URL_MALFORMAT
            throw .refused(code, "the URL \(String(cString: curl_url_strerror(result)).lowercased())")
        }
        scheme = parts[CURLUPART_SCHEME]
        host = parts[CURLUPART_HOST]
        port = Int(parts[CURLUPART_PORT]) ?? 0
        guard scheme == "http" || scheme == "https" else {
            throw .refused(CURLE_UNSUPPORTED_PROTOCOL, "the URL's scheme is neither http nor https")
        }
        let zone = parts[CURLUPART_ZONEID]
        // libcurl ignores the zone, but the same link-local address may be a different machine on each link.
        origin = "\(scheme)://\(host)\(zone.isEmpty ? "" : "%\(zone)"):\(port)"
        isSecure = scheme == "https"
        literal = Self.literal(host, zone: zone)
        guard !host.isEmpty else { throw .refused(CURLE_URL_MALFORMAT, "the URL has no host") }
    }

    /// Checks that the URL is printable ASCII. libcurl would convert other host names to punycode and look those up.
    static func checkBytes(of text: String) throws(TransferFailure) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw .refused(
                CURLE_URL_MALFORMAT,
                "the URL contains spaces, control characters or characters other than ASCII"
            )
        }
    }

    /// Parses the host as an address. An unknown interface is left out; connecting then reports what is wrong.
    private static func literal(_ host: String, zone: String) -> IPAddress? {
        guard host.hasPrefix("[") else { return IPAddress(host) }
        let address = String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
        return IPAddress(zone.isEmpty ? address : "\(address)%\(zone)") ?? IPAddress(address)
    }
}

/// Owns a `CURLU`.
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
