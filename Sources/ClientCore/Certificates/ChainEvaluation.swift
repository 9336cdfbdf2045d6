internal import CNetwatchCrypto
internal import Foundation
internal import NetwatchTransport

/// Evaluates a certificate chain with OpenSSL outside of a handshake.
enum ChainEvaluation {
    /// OpenSSL's security level for keys and signatures (`SSL_CTX_set_security_level(3)`). Level 2 requires a strength
    /// of 112 bits, as Debian and Ubuntu require for TLS.
    private static let securityLevel: CInt = 2

    /// The certificates that a chain must lead to: roots, intermediates, or the server's own certificate.
    enum Anchors {
        case system
        case only([Certificate])
    }

    /// Returns whether the chain is valid at the current time. The host name is not checked.
    ///
    /// - Parameters:
    ///   - chain: The server's certificate first, then certificates that may link it to an anchor.
    ///   - anchors: The trusted certificates.
    ///   - lists: Revocation lists. Default: none, and revocation is not checked. With lists, one of them must be from
    ///     the issuer of the server's certificate, and this list must not contain the certificate. Otherwise the chain
    ///     is not valid.
    static func isValid(
        _ chain: [Certificate],
        anchors: [Certificate],
        lists: [CertificateRevocationList] = []
    ) -> Bool {
        presented(chain, by: "", anchors: .only(anchors), lists: lists)?.verdict.isTrusted ?? false
    }

    /// Evaluates a chain as in a handshake with `host`; otherwise like ``isValid(_:anchors:lists:)``.
    ///
    /// - Returns: `nil` if the chain is empty or memory is exhausted.
    static func presented(
        _ chain: [Certificate],
        by host: String,
        anchors: Anchors,
        lists: [CertificateRevocationList] = []
    ) -> PresentedTrust? {
        let certificates = chain.compactMap { ParsedCertificate(Array($0.data)) }
        guard certificates.count == chain.count, let own = certificates.first else { return nil }
        return callingOpenSSL {
            guard let store = store(anchors, lists) else { return nil }
            defer { X509_STORE_free(store) }
            guard let others = OPENSSL_sk_new_null() else { return nil }
            defer { OPENSSL_sk_free(others) }
            for certificate in certificates.dropFirst() {
                OPENSSL_sk_push(others, UnsafeRawPointer(certificate.x509.pointer))
            }
            // The stack holds the certificates without increasing their reference counts.
            return withExtendedLifetime(certificates) {
                presented(own, others, by: host, store, checksRevocation: !lists.isEmpty)
            }
        }
    }

    private static func presented(
        _ own: ParsedCertificate,
        _ others: OpaquePointer,
        by host: String,
        _ store: OpaquePointer,
        checksRevocation: Bool
    ) -> PresentedTrust? {
        guard let evaluation = X509_STORE_CTX_new() else { return nil }
        defer { X509_STORE_CTX_free(evaluation) }
        guard X509_STORE_CTX_init(evaluation, store, own.x509.pointer, others) == 1,
            X509_STORE_CTX_set_default(evaluation, "ssl_server") == 1
        else { return nil }
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(evaluation), securityLevel)
        let revocation = checksRevocation ? netwatch_x509_crl_check : 0
        X509_STORE_CTX_set_flags(evaluation, netwatch_x509_partial_chain | revocation)
        _ = X509_verify_cert(evaluation)
        return PresentedTrust(evaluation, host: host)
    }

    /// Returns a store with the anchors and lists. The caller must free the store.
    ///
    /// - Returns: `nil` if memory is exhausted.
    private static func store(_ anchors: Anchors, _ lists: [CertificateRevocationList]) -> OpaquePointer? {
        guard let store = X509_STORE_new() else { return nil }
        switch anchors {
        case .system:
            let bundle = SystemAuthorities.bundle
            X509_STORE_load_locations(store, bundle, bundle == nil ? SystemAuthorities.directory : nil)
        case .only(let anchors):
            for anchor in anchors {
                guard let parsed = ParsedCertificate(Array(anchor.data)) else { continue }
                X509_STORE_add_cert(store, parsed.x509.pointer)
            }
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
