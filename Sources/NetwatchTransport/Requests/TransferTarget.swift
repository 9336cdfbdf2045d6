internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request with its parsed URL and the addresses of its host.
///
/// It is confined to the engine's thread. It is an object, because copying a request takes long.
final class TransferTarget {
    let request: TransferRequest
    let url: CurlURL
    /// ``TransferRequest/decodesBody``, stored because it compares the names of all header fields.
    let decodesBody: Bool
    /// The addresses to connect to. Created for the first connection, because most transfers reuse one. Empty until the
    /// host has been looked up, if that is needed.
    private(set) lazy var candidates: [ConnectionCandidate] =
        url.literal.map { [ConnectionCandidate($0, binding: request.binding)] } ?? request.candidates ?? []

    /// Validates a request and parses its URL.
    ///
    /// - Throws: ``TransferFailure`` if the request is invalid.
    init(_ request: TransferRequest, _ origins: inout OriginCache) throws(TransferFailure) {
        try request.validate()
        url = try origins.url(request.url)
        self.request = request
        decodesBody = request.decodesBody
        if let literal = url.literal {
            guard mayConnect(to: literal) else { throw .noAddress(of: request.binding?.family) }
        } else if let known = request.candidates, known.isEmpty {
            throw .noAddress(of: nil)
        }
    }

    var needsLookup: Bool {
        request.unixSocketPath == nil && request.candidates == nil && url.literal == nil
    }

    /// Sets the addresses of the host.
    ///
    /// - Throws: ``TransferFailure`` with code 6 (could not resolve) if the transfer cannot use any of them.
    func setAddresses(_ addresses: [IPAddress]) throws(TransferFailure) {
        candidates = addresses.filter(mayConnect).map { ConnectionCandidate($0, binding: request.binding) }
        if candidates.isEmpty { throw .noAddress(of: request.binding?.family) }
    }

    /// Returns whether the transfer can use an address. If it is bound to an address, it can use only addresses of the
    /// same family.
    private func mayConnect(to address: IPAddress) -> Bool {
        let family = request.binding?.family
        return family == nil || address.family == family
    }

    /// Whether the engine makes the connection. libcurl itself connects to unix sockets, because that never blocks.
    var needsConnector: Bool { request.unixSocketPath == nil }

    /// Whether the transfer may share connections with other transfers. Transfers to a link-local address with a zone
    /// may not, because libcurl ignores the zone when it selects a connection.
    var mayShareConnections: Bool {
        request.allowsConnectionReuse && request.binding == nil && needsConnector
            && url.literal?.zone ?? 0 == 0
    }

    /// Returns the value of `CURLOPT_RESOLVE`, which keeps libcurl from looking up the host.
    ///
    /// The address in the entry is never used, because libcurl receives a connected socket. libcurl never removes
    /// entries. Therefore the entry has a wildcard instead of the host, so that there is at most one entry per port.
    func resolveList() -> StringList {
        var list = StringList()
        if needsConnector, url.literal == nil { list.append("*:\(url.port):127.0.0.1") }
        return list
    }
}

extension TransferRequest {
    /// Returns the host to which a transfer with this URL would connect, without brackets.
    ///
    /// The URL is parsed by libcurl, because parsers disagree. For example, others take the host `0x0a.7` for a name;
    /// libcurl reads it as 10.0.0.7.
    ///
    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    package static func host(of url: String) throws(TransferFailure) -> String {
        try CurlURL(parsing: url).bareHost
    }
}

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
