internal import CNetwatchCurl

extension EasyHandle {
    /// Sets the options for server trust and for the client's certificate.
    func apply(_ trust: TransferTrust) throws(TransferFailure) {
        // The server presents no certificates when a session is resumed, so the trust checks would be skipped.
        try set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        // libcurl calls the verify callback only if it verifies the peer.
        try set(CURLOPT_SSL_VERIFYPEER, trust.anchors != nil || trust.check != nil ? 1 : 0)
        try set(CURLOPT_SSL_VERIFYHOST, trust.checksHost ? 2 : 0)
        try set(CURLOPT_SSLVERSION, (trust.minimumVersion ?? .standardMinimum).option)
        if trust.requiresStapledStatus { try set(CURLOPT_SSL_VERIFYSTATUS, 1) }
        switch trust.anchors {
        case .system, nil: try useSystemAnchors()
        case .only(let pem): try use(anchors: pem)
        }
        if let identity = trust.identity { try apply(identity) }
    }

    /// Makes libcurl accept the system's certificate authorities.
    ///
    /// libcurl (since 7.87) caches the parsed file of authorities for all connections, but not if it also has a
    /// directory of authorities. Debian sets both by default, so the directory is removed if the file is readable.
    private func useSystemAnchors() throws(TransferFailure) {
        if SystemAuthorities.bundle != nil { try set(CURLOPT_CAPATH, pointer: nil) }
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

extension TransferTrust.TLSVersion {
    /// The minimum version without a setting of the program.
    fileprivate static let standardMinimum: Self = {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return .tls12 }
        defer { SSL_CTX_free(context) }
        // 0x0304 is TLS1_3_VERSION.
        return SSL_CTX_ctrl(context, netwatch_ctrl_get_min_proto_version, 0, nil) >= 0x0304 ? .tls13 : .tls12
    }()

    /// The value of `CURLOPT_SSLVERSION`, which sets only a minimum.
    fileprivate var option: Int {
        switch self {
        case .tls10: CURL_SSLVERSION_TLSv1_0
        case .tls11: CURL_SSLVERSION_TLSv1_1
        case .tls12: CURL_SSLVERSION_TLSv1_2
        case .tls13: CURL_SSLVERSION_TLSv1_3
        }
    }
}
