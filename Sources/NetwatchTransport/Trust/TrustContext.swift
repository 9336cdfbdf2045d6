internal import CNetwatchCurl

/// A ``TransferTrust`` prepared for handshakes. Its revocation lists are parsed once for all connections.
final class TrustContext {
    let trust: TransferTrust
    private let revocationLists: RevocationLists?

    /// Prepares a trust for handshakes.
    ///
    /// - Parameters:
    ///   - trust: The trust.
    ///   - capabilities: The features of libcurl.
    /// - Throws: ``TransferFailure`` with one of two codes: 82 (`CURLE_SSL_CRL_BADFILE`) if a revocation list is
    ///   unreadable; 4 (`CURLE_NOT_BUILT_IN`) if the trust needs OpenSSL and libcurl uses another TLS library, or if
    ///   libcurl uses another major version of OpenSSL than netwatch.
    init(_ trust: TransferTrust, _ capabilities: TransferCapabilities) throws(TransferFailure) {
        if let missing = capabilities.missing(for: trust) { throw missing }
        self.trust = trust
        revocationLists = trust.revocationLists.isEmpty ? nil : try RevocationLists(trust.revocationLists)
    }

    /// Whether netwatch must evaluate each handshake.
    var evaluatesHandshakes: Bool { trust.anchors != nil || trust.check != nil }

    func prepare(_ evaluation: OpaquePointer) {
        guard trust.usesRevocationLists else { return }
        // OpenSSL refuses the server if it must check lists and there are none.
        if let revocationLists { X509_STORE_CTX_set0_crls(evaluation, revocationLists.stack) }
        X509_STORE_CTX_set_flags(evaluation, netwatch_x509_flag_crl_check)
        guard trust.acceptsAnyRevocationSource, !trust.requiresRevocationList else { return }
        X509_STORE_CTX_set_verify_cb(evaluation) { isGood, evaluation in
            isGood == 1 || TrustContext.lacksCurrentList(evaluation!) ? 1 : 0
        }
    }

    /// Returns whether an evaluation has found no list of the certificate's issuer that is valid now.
    static func lacksCurrentList(_ evaluation: OpaquePointer) -> Bool {
        [netwatch_x509_error_no_crl, netwatch_x509_error_early_crl, netwatch_x509_error_old_crl]
            .contains(X509_STORE_CTX_get_error(evaluation))
    }
}

extension TransferCapabilities {
    /// Returns the failure that explains why a trust is not supported; `nil` if the trust is supported.
    func missing(for trust: TransferTrust) -> TransferFailure? {
        if let openSSLConflict { return .refused(CURLE_NOT_BUILT_IN, openSSLConflict) }
        guard !usesOpenSSL, trust.needsOpenSSL else { return nil }
        let library = tlsLibrary ?? "no TLS library"
        return .refused(
            CURLE_NOT_BUILT_IN,
            """
            pins, custom checks, revocation lists and client certificates need libcurl with OpenSSL; this libcurl uses \
            \(library)
            """
        )
    }
}

extension TransferTrust {
    /// Whether the trust needs a libcurl with OpenSSL. Every TLS library can verify a server against the system's
    /// authorities, or not verify it. Everything else requires certificates in memory, which not every library
    /// accepts.
    fileprivate var needsOpenSSL: Bool {
        let hasOwnAnchors = if case .only = anchors { true } else { false }
        return hasOwnAnchors || check != nil || usesRevocationLists || acceptsAnyRevocationSource
            || identity != nil
    }

    /// Whether lists are part of the evaluation.
    fileprivate var usesRevocationLists: Bool { requiresRevocationList || !revocationLists.isEmpty }
}

/// An owner of parsed certificate revocation lists.
private final class RevocationLists {
    let stack: OpaquePointer

    /// Parses revocation lists.
    ///
    /// - Parameter pem: One or more revocation lists in PEM.
    /// - Throws: ``TransferFailure`` with code 82 (`CURLE_SSL_CRL_BADFILE`) if there is none.
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
        // The loop always ends with OpenSSL's error for the end of the data.
        ERR_clear_error()
        guard OPENSSL_sk_num(stack) > 0 else {
            throw .refused(CURLE_SSL_CRL_BADFILE, "the revocation lists contain no list in PEM")
        }
    }

    deinit {
        OPENSSL_sk_pop_free(stack) { X509_CRL_free($0.map { OpaquePointer($0) }) }
    }
}
