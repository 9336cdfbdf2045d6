internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request with its parsed URL and the addresses of its host.
struct TransferTarget {
    var request: TransferRequest
    let url: CurlURL
    /// The addresses to connect to. Empty until they are known, and for unix sockets.
    private(set) var candidates: [ConnectionCandidate] = []

    /// - Throws: ``TransferFailure`` if the request is invalid.
    init(_ request: TransferRequest, _ origins: inout OriginCache) throws(TransferFailure) {
        try request.validate()
        url = try origins.url(request.url)
        self.request = request
        if let literal = url.literal {
            try setAddresses([literal])
        } else if let known = request.candidates {
            candidates = known
            if known.isEmpty { throw .noAddress(of: nil) }
        }
    }

    var needsLookup: Bool {
        request.unixSocketPath == nil && request.candidates == nil && url.literal == nil
    }

    /// Sets the addresses of the host.
    ///
    /// - Throws: ``TransferFailure`` with code 6 (could not resolve) if the transfer cannot use any of them.
    mutating func setAddresses(_ found: [IPAddress]) throws(TransferFailure) {
        // Only addresses of the family that the transfer is bound to.
        let family = request.binding?.family
        candidates = found.filter { family == nil || $0.family == family }
            .map { ConnectionCandidate($0, binding: request.binding) }
        if candidates.isEmpty { throw .noAddress(of: family) }
    }

    /// Whether the engine makes the connection. libcurl connects to unix sockets itself, which never blocks.
    var needsConnector: Bool { request.unixSocketPath == nil }

    /// Whether the transfer may reuse a connection. libcurl ignores the zones of link-local addresses, so those may
    /// not.
    var mayShareConnections: Bool {
        request.allowsConnectionReuse && request.binding == nil && needsConnector
            && url.literal?.zone ?? 0 == 0
    }

    /// The value of `CURLOPT_RESOLVE`, which prevents a lookup by libcurl. The address is not used, because libcurl
    /// receives a connected socket. One entry covers all hosts of a port, because libcurl never removes entries.
    func resolveList() -> StringList {
        var list = StringList()
        if needsConnector, url.literal == nil { list.append("*:\(url.port):127.0.0.1") }
        return list
    }
}

extension TransferRequest {
    /// Returns the host that a transfer to a URL would connect to, as libcurl parses it, without brackets. Other
    /// parsers take `0x0a.7` for a name; libcurl reads it as 10.0.0.7.
    ///
    /// - Throws: ``TransferFailure`` with code 3 (malformed) or 1 (neither http nor https).
    package static func host(of url: String) throws(TransferFailure) -> String {
        try CurlURL(parsing: url).bareHost
    }
}
