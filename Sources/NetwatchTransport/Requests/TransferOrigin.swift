internal import NetwatchEventLoop

/// The scheme, host and port to which a transfer connects (RFC 6454).
///
/// The URL is parsed by libcurl, because parsers disagree. For example, others take the host `0x0a.7` for a name;
/// libcurl reads it as 10.0.0.7.
package struct TransferOrigin: Hashable, Sendable, CustomStringConvertible {
    /// `http` or `https`.
    package let scheme: String
    /// The host in lower case, without brackets. An IP address is in its canonical form, with its zone.
    package let host: String
    package let port: Int

    /// Creates the origin of an absolute URL.
    ///
    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    package init(url: String) throws(TransferFailure) {
        let parsed = try CurlURL(parsing: url)
        scheme = parsed.scheme
        host = parsed.canonicalHost
        port = parsed.port
    }

    /// The origin as a URL without a path, always with its port.
    package var description: String { "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

extension CurlURL {
    /// The host in lower case, without brackets. An IP address is in its canonical form. A zone is kept as it is
    /// written, because a link-local address may belong to a different machine on each link.
    fileprivate var canonicalHost: String {
        let address = bareHost
        let host = IPAddress(address)?.description ?? address.lowercased()
        return zone.isEmpty ? host : "\(host)%\(zone)"
    }
}
