internal import CNetwatchCurl

/// A trust prepared for handshakes: its revocation lists are parsed once for all connections.
final class TrustContext {
    let trust: TransferTrust
    private let revocationLists: RevocationLists?

    /// - Throws: ``TransferFailure`` with code 82 (`CURLE_SSL_CRL_BADFILE`) for an unreadable revocation list, and 4
    ///   (`CURLE_NOT_BUILT_IN`) if the trust needs OpenSSL and libcurl uses another TLS library.
    init(_ trust: TransferTrust) throws(TransferFailure) {
        if let missing = TransferCapabilities.current.missing(for: trust) { throw missing }
        self.trust = trust
        revocationLists = trust.revocationLists.isEmpty ? nil : try RevocationLists(trust.revocationLists)
    }

    /// Whether netwatch must evaluate each handshake.
    var judges: Bool { trust.anchors != nil || trust.check != nil }

    fileprivate func prepare(_ evaluation: OpaquePointer) {
        guard let revocationLists else { return }
        X509_STORE_CTX_set0_crls(evaluation, revocationLists.stack)
        X509_STORE_CTX_set_flags(evaluation, netwatch_x509_flag_crl_check)
    }
}

/// Evaluates the certificates that a server presents in a handshake, and records why they were refused.
///
/// The TLS library retains it as long as the connection lasts, because there may be another handshake. The transfer for
/// which the connection was made retains it too. Both are confined to the engine's thread.
final class TrustJudge {
    private(set) var presented: PresentedTrust?
    private(set) var isRefusedByCheck = false
    private let context: TrustContext
    private let host: String

    private static let index = CRYPTO_get_ex_new_index(netwatch_ex_index_ssl_ctx, 0, nil, nil, nil) {
        _,
        judge,
        _,
        _,
        _,
        _ in
        if let judge { Unmanaged<TrustJudge>.fromOpaque(judge).release() }
    }

    init(_ context: TrustContext, host: String) {
        self.context = context
        self.host = host
    }

    /// Releases the presented certificates, which the connection would otherwise retain as long as it lasts.
    func forget() {
        presented = nil
    }

    /// Makes OpenSSL call this judge in every handshake of a connection. Returns whether that was possible.
    func attach(to connection: OpaquePointer) -> Bool {
        let judge = Unmanaged.passRetained(self)
        guard SSL_CTX_set_ex_data(connection, Self.index, judge.toOpaque()) == 1 else {
            judge.release()
            return false
        }
        SSL_CTX_set_cert_verify_callback(
            connection,
            { evaluation, judge in
                let judge = Unmanaged<TrustJudge>.fromOpaque(judge!).takeUnretainedValue()
                return judge.accepts(evaluation!) ? 1 : 0
            },
            judge.toOpaque()
        )
        return true
    }

    private func accepts(_ evaluation: OpaquePointer) -> Bool {
        context.prepare(evaluation)
        isRefusedByCheck = false
        let isValid = X509_verify_cert(evaluation) == 1
        let shown = PresentedTrust(evaluation, host: host)
        presented = shown
        guard isValid && shown.verdict.isTrusted || context.trust.anchors == nil else { return false }
        isRefusedByCheck = context.trust.check?.evaluate(shown) == false
        // libcurl reads the last error once more after the handshake.
        X509_STORE_CTX_set_error(evaluation, isRefusedByCheck ? netwatch_x509_error_application : 0)
        ERR_clear_error()
        return !isRefusedByCheck
    }
}

extension PresentedTrust {
    fileprivate init(_ evaluation: OpaquePointer, host: String) {
        let sent = [UInt8].certificates(in: X509_STORE_CTX_get0_untrusted(evaluation))
        var chain = [UInt8].certificates(in: X509_STORE_CTX_get0_chain(evaluation))
        // If the evaluation fails early, OpenSSL has built no chain.
        if chain.isEmpty, let own = [UInt8](certificate: X509_STORE_CTX_get0_cert(evaluation)) {
            chain = [own]
        }
        self.init(
            host: host,
            chain: chain + sent.filter { !chain.contains($0) },
            verdict: TrustVerdict(evaluation)
        )
    }
}

extension TrustVerdict {
    fileprivate init(_ evaluation: OpaquePointer) {
        let code = X509_STORE_CTX_get_error(evaluation)
        self.init(
            code: code,
            depth: code == 0 ? 0 : X509_STORE_CTX_get_error_depth(evaluation),
            message: String(cString: X509_verify_cert_error_string(Int(code)))
        )
    }
}

extension [UInt8] {
    fileprivate static func certificates(in stack: OpaquePointer?) -> [[UInt8]] {
        guard let stack else { return [] }
        return (0..<Swift.max(0, OPENSSL_sk_num(stack))).compactMap { index in
            [UInt8](certificate: OPENSSL_sk_value(stack, index).map { OpaquePointer($0) })
        }
    }

    /// Encodes a certificate in DER.
    fileprivate init?(certificate: OpaquePointer?) {
        guard let certificate else { return nil }
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return nil }
        self.init(unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
            var end = buffer.baseAddress
            initialized = Int(Swift.max(0, i2d_X509(certificate, &end)))
        }
    }
}

/// Owns parsed certificate revocation lists.
private final class RevocationLists {
    let stack: OpaquePointer

    /// - Parameter pem: One or more lists.
    init(_ pem: [UInt8]) throws(TransferFailure) {
        guard let stack = OPENSSL_sk_new_null() else {
            throw .refused(CURLE_OUT_OF_MEMORY, "out of memory")
        }
        self.stack = stack
        pem.withUnsafeBytes { bytes in
            let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(clamping: bytes.count))
            defer { BIO_free(bio) }
            while let bio, let list = PEM_read_bio_X509_CRL(bio, nil, nil, nil) {
                OPENSSL_sk_push(stack, UnsafeRawPointer(list))
            }
        }
        // Reading always ends with the error that there is no more data.
        ERR_clear_error()
        guard OPENSSL_sk_num(stack) > 0 else {
            throw .refused(CURLE_SSL_CRL_BADFILE, "the lists of revoked certificates contain none in PEM")
        }
    }

    deinit {
        OPENSSL_sk_pop_free(stack) { X509_CRL_free($0.map { OpaquePointer($0) }) }
    }
}
