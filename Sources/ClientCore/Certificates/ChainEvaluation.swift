internal import CNetwatchCrypto
internal import Foundation

/// Evaluates a certificate chain with OpenSSL outside of a handshake, with the given trust anchors only.
enum ChainEvaluation {
    /// OpenSSL's security level for keys and signatures (`SSL_CTX_set_security_level(3)`). Level 2 requires a strength
    /// of 112 bits, as Debian and Ubuntu require for TLS.
    private static let securityLevel: CInt = 2

    /// Returns whether the chain is valid at the current time. The host name is not checked.
    ///
    /// - Parameters:
    ///   - chain: The server's certificate first, then certificates that may link it to an anchor.
    ///   - anchors: The trusted certificates: roots, intermediates, or the server's own certificate.
    ///   - lists: Revocation lists. Default: none, and revocation is not checked. With lists, one of them must be from
    ///     the issuer of the server's certificate, and this list must not contain the certificate. Otherwise the chain
    ///     is not valid.
    static func isValid(
        _ chain: [Certificate],
        anchors: [Certificate],
        lists: [CertificateRevocationList] = []
    ) -> Bool {
        let certificates = chain.compactMap { ParsedCertificate(Array($0.data)) }
        guard certificates.count == chain.count, let own = certificates.first else { return false }
        return callingOpenSSL {
            guard let store = store(anchors, lists) else { return false }
            defer { X509_STORE_free(store) }
            guard let others = OPENSSL_sk_new_null() else { return false }
            defer { OPENSSL_sk_free(others) }
            for certificate in certificates.dropFirst() {
                OPENSSL_sk_push(others, UnsafeRawPointer(certificate.x509.pointer))
            }
            // The stack holds the certificates without increasing their reference counts.
            return withExtendedLifetime(certificates) {
                isValid(own, others, store, checksRevocation: !lists.isEmpty)
            }
        }
    }

    private static func isValid(
        _ own: ParsedCertificate,
        _ others: OpaquePointer,
        _ store: OpaquePointer,
        checksRevocation: Bool
    ) -> Bool {
        guard let evaluation = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(evaluation) }
        guard X509_STORE_CTX_init(evaluation, store, own.x509.pointer, others) == 1,
            X509_STORE_CTX_set_default(evaluation, "ssl_server") == 1
        else { return false }
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(evaluation), securityLevel)
        let revocation = checksRevocation ? netwatch_x509_crl_check : 0
        X509_STORE_CTX_set_flags(evaluation, netwatch_x509_partial_chain | revocation)
        return X509_verify_cert(evaluation) == 1
    }

    /// Returns a store with the anchors and lists. The caller must free the store.
    ///
    /// - Returns: `nil` if memory is exhausted.
    private static func store(_ anchors: [Certificate], _ lists: [CertificateRevocationList])
        -> OpaquePointer?
    {
        guard let store = X509_STORE_new() else { return nil }
        for anchor in anchors {
            guard let parsed = ParsedCertificate(Array(anchor.data)) else { continue }
            X509_STORE_add_cert(store, parsed.x509.pointer)
        }
        for list in lists {
            let parsed = OpenSSLCoding.decoded(
                list.data,
                by: { d2i_X509_CRL(nil, $0, $1) },
                free: { X509_CRL_free($0) }
            )
            guard let parsed else { continue }
            X509_STORE_add_crl(store, parsed)
            X509_CRL_free(parsed)
        }
        return store
    }
}
