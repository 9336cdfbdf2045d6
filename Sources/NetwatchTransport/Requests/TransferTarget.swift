internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request, the URL in it, and the addresses its host has.
struct TransferTarget {
    var request: TransferRequest
    let url: CurlURL
    /// Empty when the host is an address, or a unix socket stands in for it.
    private(set) var addresses: [IPAddress] = []

    /// - Throws: ``TransferFailure`` of a request that may not be sent.
    init(_ request: TransferRequest, _ origins: inout OriginCache) throws(TransferFailure) {
        try request.validate()
        url = try origins.url(request.url)
        self.request = request
        if let literal = url.literal { _ = try usable([literal]) }
        if let known = request.addresses { try setAddresses(known) }
    }

    var needsLookup: Bool {
        request.unixSocketPath == nil && request.addresses == nil && url.literal == nil
    }

    /// Takes the addresses that the host has.
    ///
    /// - Throws: ``TransferFailure`` with code 6 (could not resolve) when the transfer may use none of them.
    mutating func setAddresses(_ found: [IPAddress]) throws(TransferFailure) {
        guard url.literal == nil else { return }
        addresses = try usable(found)
    }

    /// Those of the family that the transfer is bound to.
    private func usable(_ addresses: [IPAddress]) throws(TransferFailure) -> [IPAddress] {
        let family = request.binding?.family
        let usable = addresses.filter { family == nil || $0.family == family }
        guard usable.isEmpty else { return usable }
        throw .noAddress(of: family)
    }

    /// When a lookup that has not ended by then fails the transfer, counted from its beginning.
    var lookupTimeout: Duration {
        min(request.connectTimeout, request.totalTimeout ?? request.connectTimeout)
    }

    /// Takes time that the transfer has waited for others off the timeouts that have begun.
    mutating func wait(_ elapsed: Duration) {
        request.totalTimeout = request.totalTimeout.map { $0 - elapsed }
    }

    /// Takes time that the lookup has taken off the timeouts that have begun.
    mutating func spend(_ elapsed: Duration) {
        request.connectTimeout -= elapsed
        request.totalTimeout = request.totalTimeout.map { $0 - elapsed }
    }

    /// What `CURLOPT_RESOLVE` puts into the name cache. The plus lets the entry age as a looked-up one
    /// does; a zone cannot be written there.
    func resolveList() -> StringList {
        var list = StringList()
        guard !addresses.isEmpty else { return list }
        let texts = addresses.map { address in
            let text = IPAddress(bytes: address.bytes)!.description
            return address.family == .ipv6 ? "[\(text)]" : text
        }
        list.append("+\(url.host):\(url.port):\(texts.joined(separator: ","))")
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
