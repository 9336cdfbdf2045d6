internal import CNetwatchCurl
internal import Glibc

/// How a TLS server must prove its identity, and the certificate with which the client identifies itself.
///
/// Transfers share connections only if their trust is equal. libcurl alone would give a pooled connection to any
/// transfer with the same options. It would not call the custom check of that transfer, which might refuse the server.
package struct TransferTrust: Hashable, Sendable {
    /// The certificates that can vouch for a server.
    package enum Anchors: Hashable, Sendable {
        /// The system's certificate authorities.
        case system
        /// Only these certificates, in PEM. They need not be roots: an intermediate certificate or the server's own is
        /// also accepted as an anchor (`X509_V_FLAG_PARTIAL_CHAIN`).
        case only(pem: [UInt8])
    }

    /// The versions of TLS.
    package enum TLSVersion: Sendable {
        case tls10, tls11, tls12, tls13
    }

    /// The oldest version of TLS that the transfer accepts, whatever OpenSSL's configuration says. Default `nil`: 1.2,
    /// because RFC 8996 deprecates older versions, or the minimum of OpenSSL's configuration if that is newer.
    package var minimumVersion: TLSVersion?
    /// The anchors to which a server's chain must lead; `nil` accepts any certificate. Default ``Anchors/system``.
    package var anchors: Anchors? = .system
    /// Whether the server's certificate must name the URL's host. Default true.
    package var checksHost = true
    /// Whether the server must staple an OCSP response (RFC 6066 §8) that says its certificate is good. Default false.
    package var requiresStapledStatus = false
    /// Certificate revocation lists in PEM. Default: none. Ignored without anchors.
    ///
    /// If there are any, one of them must be from the issuer of the server's certificate and current, and it must not
    /// contain that certificate. Otherwise the server is not trusted. With ``acceptsAnyRevocationSource``, such a list
    /// may be missing, unless ``requiresRevocationList`` is true.
    package var revocationLists: [UInt8] = []
    /// Whether one source suffices that reports the certificate as good: a stapled OCSP response, or a current list of
    /// ``revocationLists``. A source that reports anything else still refuses the server. Default false: each source
    /// that the properties above name must report the certificate as good.
    package var acceptsAnyRevocationSource = false
    /// Whether a list must report the certificate as good even if ``acceptsAnyRevocationSource`` is true. A stapled
    /// response that reports anything else then still refuses the server, but may be missing. Without any list, every
    /// server is refused. Default false. Ignored without anchors.
    package var requiresRevocationList = false
    /// A custom check, which makes the final decision after the chain was evaluated. Default `nil`: the evaluation
    /// decides.
    package var check: TrustCheck?
    /// The client's certificate and key, used if the server asks for a certificate. Default `nil`: the client sends
    /// none.
    package var identity: TransferIdentity?

    package init() {}

    /// The default trust, as browsers require it: the system's authorities and the right host name.
    package static let standard = TransferTrust()
}

extension TransferTrust {
    /// Hashes only properties that are cheap to hash. The PEM data may be megabytes, and each transfer needs the hash.
    /// Comparing equal values is cheap, because they mostly share their storage.
    package func hash(into hasher: inout Hasher) {
        if case .only(let pem) = anchors { hasher.combine(pem.count) }
        hasher.combine(anchors == nil)
        hasher.combine(minimumVersion)
        hasher.combine(checksHost)
        hasher.combine(requiresStapledStatus)
        hasher.combine(revocationLists.count)
        hasher.combine(acceptsAnyRevocationSource)
        hasher.combine(requiresRevocationList)
        hasher.combine(check)
        hasher.combine(identity?.key.count)
    }
}

/// A client's certificate and its key.
package struct TransferIdentity: Hashable, Sendable {
    /// The client's certificate, followed by the intermediate certificates, in PEM.
    package let certificates: [UInt8]
    /// The private key in PEM, unencrypted.
    package let key: [UInt8]

    package init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}

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

/// The certificate authorities that libcurl was built to trust.
package enum SystemAuthorities {
    /// The path of the file with all authorities; `nil` if there is none or it is not readable.
    package static var bundle: String? {
        guard let path = curl_version_info(CURLVERSION_SEVENTH).pointee.cainfo, access(path, R_OK) == 0
        else { return nil }
        return String(cString: path)
    }

    /// The path of the directory with one file for each authority; `nil` if there is none.
    package static var directory: String? {
        curl_version_info(CURLVERSION_SEVENTH).pointee.capath.map { String(cString: $0) }
    }
}
