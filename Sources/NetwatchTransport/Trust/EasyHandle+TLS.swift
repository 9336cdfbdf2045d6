internal import CNetwatchCurl
internal import Glibc

extension EasyHandle {
    /// Tells the handle what the server has to prove, and what HTTP to speak over TLS.
    func applyTLS(of request: TransferRequest) throws(TransferFailure) {
        // A session that is resumed comes without certificates, so that nobody would be asked about them.
        try set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        if TransferCapabilities.current.supportsHTTP2 {
            try set(CURLOPT_STREAM_WEIGHT, request.streamWeight)
        }
        try apply(request.trust)
        if let identity = request.trust.identity { try apply(identity) }
    }

    private func apply(_ trust: TransferTrust) throws(TransferFailure) {
        // A check is not asked unless the chain is looked at.
        try set(CURLOPT_SSL_VERIFYPEER, trust.anchors != nil || trust.check != nil ? 1 : 0)
        try set(CURLOPT_SSL_VERIFYHOST, trust.checksHost ? 2 : 0)
        if trust.requiresStapledStatus { try set(CURLOPT_SSL_VERIFYSTATUS, 1) }
        switch trust.anchors {
        case .system, nil: try useSystemAnchors()
        case .only(let pem): try use(anchors: pem)
        }
    }

    /// libcurl reads the file with a hundred and more authorities once for all connections (7.87), but not when it
    /// knows a directory of them as well, as Debian's does by default.
    private func useSystemAnchors() throws(TransferFailure) {
        guard let bundle = curl_version_info(CURLVERSION_SEVENTH).pointee.cainfo, access(bundle, R_OK) == 0
        else {
            return
        }
        try set(CURLOPT_CAPATH, pointer: nil)
    }

    private func use(anchors pem: [UInt8]) throws(TransferFailure) {
        try set(CURLOPT_CAINFO, pointer: nil)
        try set(CURLOPT_CAPATH, pointer: nil)
        try set(CURLOPT_CAINFO_BLOB, blob: pem)
    }

    private func apply(_ identity: TransferIdentity) throws(TransferFailure) {
        try set(CURLOPT_SSLCERTTYPE, "PEM")
        try set(CURLOPT_SSLCERT_BLOB, blob: identity.certificates)
        try set(CURLOPT_SSLKEYTYPE, "PEM")
        try set(CURLOPT_SSLKEY_BLOB, blob: identity.key)
    }
}

extension TransferRequest {
    /// 1 to 256 (RFC 7540 §5.3.2), 16 for the default, doubled or halved with every eighth.
    fileprivate var streamWeight: Int {
        Int(exp2(urgency * 8).rounded())
    }
}
