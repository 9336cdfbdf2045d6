internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request, the URL in it, and the addresses its host has.
struct TransferTarget {
    var request: TransferRequest
    let url: CurlURL
    /// The addresses to connect to. Empty until they are known, and for unix sockets.
    private(set) var candidates: [ConnectionCandidate] = []

    /// - Throws: ``TransferFailure`` of a request that may not be sent.
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

    /// Takes the addresses that the host has.
    ///
    /// - Throws: ``TransferFailure`` with code 6 (could not resolve) when the transfer may use none of them.
    mutating func setAddresses(_ found: [IPAddress]) throws(TransferFailure) {
        // Of the family that the transfer is bound to.
        let family = request.binding?.family
        candidates = found.filter { family == nil || $0.family == family }
            .map { ConnectionCandidate($0, binding: request.binding) }
        if candidates.isEmpty { throw .noAddress(of: family) }
    }

    /// Whether the engine connects. libcurl connects to unix sockets, which never blocks.
    var needsConnector: Bool { request.unixSocketPath == nil }

    /// Whether it may reuse a connection. libcurl ignores the zones of link-local addresses.
    var mayShareConnections: Bool {
        request.allowsConnectionReuse && request.binding == nil && needsConnector
            && url.literal?.zone ?? 0 == 0
    }

    /// The value of `CURLOPT_RESOLVE`, which prevents a lookup by libcurl. The address is not used, because libcurl gets a
    /// connected socket. There is one entry for all hosts of a port, since libcurl never removes them.
    func resolveList() -> StringList {
        var list = StringList()
        if needsConnector, url.literal == nil { list.append("*:\(url.port):127.0.0.1") }
        return list
    }
}

extension TransferFailure {
    fileprivate static func noAddress(of family: IPAddress.Family?) -> TransferFailure {
        let kind =
            switch family {
            case .ipv4: "IPv4 address"
            case .ipv6: "IPv6 address"
            case nil: "address"
            }
        return TransferFailure(
            code: Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue),
            phase: .resolve,
            message: "the host has no \(kind)"
        )
    }
}
