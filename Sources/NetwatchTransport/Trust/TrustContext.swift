internal import CNetwatchCurl

/// A trust made ready for handshakes: what has to be parsed is parsed once for all connections.
final class TrustContext {
    let trust: TransferTrust
    private let revocationLists: RevocationLists?

    /// - Throws: ``TransferFailure`` with code 82 (`CURLE_SSL_CRL_BADFILE`) for a list that cannot be read, and 4
    ///   (`CURLE_NOT_BUILT_IN`) for what needs OpenSSL where libcurl has another TLS library.
    init(_ trust: TransferTrust) throws(TransferFailure) {
        if let missing = TransferCapabilities.current.missing(for: trust) { throw missing }
        self.trust = trust
        revocationLists = trust.revocationLists.isEmpty ? nil : try RevocationLists(trust.revocationLists)
    }

    /// Whether a handshake has to ask us.
    var judges: Bool { trust.anchors != nil || trust.check != nil }

    fileprivate func prepare(_ evaluation: OpaquePointer) {
        guard let revocationLists else { return }
        X509_STORE_CTX_set0_crls(evaluation, revocationLists.stack)
        X509_STORE_CTX_set_flags(evaluation, netwatch_x509_flag_crl_check)
    }
}

/// Judges what a server shows in one handshake, and remembers why it was refused.
///
/// The TLS library keeps it for as long as the connection lasts, for it may shake hands again; the transfer that the
/// connection was made for keeps it too. Both are on the engine's thread.
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

    /// Lets go of what was shown, which a connection would keep for as long as it lasts.
    func forget() {
        presented = nil
    }

    /// Has every handshake of a connection ask us. Returns whether that was possible.
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
        // libcurl asks for the last error once more after the handshake.
        X509_STORE_CTX_set_error(evaluation, isRefusedByCheck ? netwatch_x509_error_application : 0)
        ERR_clear_error()
        return !isRefusedByCheck
    }
}

extension PresentedTrust {
    fileprivate init(_ evaluation: OpaquePointer, host: String) {
        let sent = [UInt8].certificates(in: X509_STORE_CTX_get0_untrusted(evaluation))
        var chain = [UInt8].certificates(in: X509_STORE_CTX_get0_chain(evaluation))
        // An evaluation that failed early has built nothing.
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

    /// A certificate in DER.
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

/// Owner of lists of revoked certificates.
private final class RevocationLists {
    let stack: OpaquePointer

    /// - Parameter pem: One list or more.
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
        // Reading ends with an error that says that there is no more.
        ERR_clear_error()
        guard OPENSSL_sk_num(stack) > 0 else {
            throw .refused(CURLE_SSL_CRL_BADFILE, "the lists of revoked certificates contain none in PEM")
        }
    }

    deinit {
        OPENSSL_sk_pop_free(stack) { X509_CRL_free($0.map { OpaquePointer($0) }) }
    }
}
