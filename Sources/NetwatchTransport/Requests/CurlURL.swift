internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A URL as libcurl's own parser (`libcurl-url(3)`) reads it, so that what is looked up and what is
/// connected to cannot differ.
struct CurlURL: Equatable {
    let scheme: String
    /// The host as `CURLOPT_RESOLVE` names it.
    let host: String
    let port: Int

    /// Scheme, host and port: what has connections of its own.
    let origin: String
    let isSecure: Bool

    /// The host without brackets and zone.
    var bareHost: String {
        guard host.hasPrefix("[") else { return host }
        return String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
    }

    /// The address that the host is, which needs no lookup.
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
        // What libcurl calls the same host may be two machines, each on its link.
        origin = "\(scheme)://\(host)\(zone.isEmpty ? "" : "%\(zone)"):\(port)"
        isSecure = scheme == "https"
        literal = Self.literal(host, zone: zone)
        guard !host.isEmpty else { throw .refused(CURLE_URL_MALFORMAT, "the URL names no host") }
    }

    /// libcurl would turn other names into punycode, and look that up.
    static func checkBytes(of text: String) throws(TransferFailure) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw .refused(CURLE_URL_MALFORMAT, "the URL contains spaces, controls or bytes beyond ASCII")
        }
    }

    /// An interface that does not exist is left out, and connecting says what is wrong.
    private static func literal(_ host: String, zone: String) -> IPAddress? {
        guard host.hasPrefix("[") else { return IPAddress(host) }
        let address = String(host.dropFirst().prefix { $0 != "]" && $0 != "%" })
        return IPAddress(zone.isEmpty ? address : "\(address)%\(zone)") ?? IPAddress(address)
    }
}

extension TransferRequest {
    /// The host that a transfer to a URL would connect to, without brackets, as libcurl reads it: other parsers take
    /// `0x0a.7` for a name, which it knows to be 10.0.0.7.
    ///
    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    package static func host(of url: String) throws(TransferFailure) -> String {
        try CurlURL(parsing: url).bareHost
    }
}

/// Owner of a `CURLU`.
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

extension TransferFailure {
    /// A request that is not even tried.
    static func refused(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(code: Int32(code.rawValue), phase: .prepare, message: message)
    }
}
