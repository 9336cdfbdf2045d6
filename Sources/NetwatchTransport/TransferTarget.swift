internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A request, the URL in it, and the addresses its host has.
struct TransferTarget {
    var request: TransferRequest
    let url: CurlURL
    /// Empty when the host is an address, or a unix socket stands in for it.
    var addresses: [IPAddress] = []

    /// - Throws: ``TransferFailure`` of a request that may not be sent.
    init(_ request: TransferRequest) throws(TransferFailure) {
        try request.validate()
        url = try CurlURL(parsing: request.url)
        self.request = request
    }

    var needsLookup: Bool {
        request.unixSocketPath == nil && !url.isLiteral
    }

    /// When a lookup that has not ended by then fails the transfer, counted from its start.
    var lookupTimeout: Duration {
        min(request.connectTimeout, request.totalTimeout ?? request.connectTimeout)
    }

    /// Takes time that has passed since the start off the timeouts that have begun.
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
