internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request, the URL in it, and the addresses its host has.
struct TransferTarget {
    var request: TransferRequest
    let url: CurlURL
    /// What may be connected to. Empty until it is known, and when a unix socket stands in for it.
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

    /// Whether we make its connection. To a unix socket libcurl does, which is a matter of a moment.
    var needsConnector: Bool { request.unixSocketPath == nil }

    /// Whether it may go over a connection that others have used. libcurl does not tell link-local addresses apart by their
    /// zones.
    var mayShareConnections: Bool {
        request.allowsConnectionReuse && request.binding == nil && needsConnector
            && url.literal?.zone ?? 0 == 0
    }

    /// What keeps libcurl from looking the name up: an address in place of all that the host has. It is not connected to,
    /// because libcurl gets a connected socket. One entry for all hosts of a port, since libcurl never forgets them.
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
