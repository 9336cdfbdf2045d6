internal import CNetwatchCrypto
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The certificates that a server presents in a TLS handshake, and OpenSSL's evaluation of them. The counterpart of
/// `SecTrust` in Apple's Security framework.
public struct ServerTrust: Hashable, Sendable {
    /// The requested host: a lowercase ASCII name without a trailing dot, or an address without brackets. This is the
    /// form that ``ServerTrustPolicyManager/serverTrustPolicy(forHost:)`` receives.
    public let host: String
    /// The certificate chain: the server's certificate, then its issuer's, and so on. It ends with the root if the
    /// server sent the root or this system knows it.
    ///
    /// Other certificates that the server sends are omitted. They prove nothing, because no certificate in the chain
    /// was issued by one of them.
    public let certificates: [Certificate]
    /// OpenSSL's result for the chain, with this system's certificate authorities and the current time. The result
    /// ignores the host name, which ``certificateNamesHost`` checks.
    public let verdict: Verdict

    /// Creates the trust of a chain that was not presented in a handshake, for example to test a policy with
    /// ``ServerTrustPolicy/evaluate(_:forHost:)``. Reads the system's certificate authorities, so do not call it often.
    ///
    /// - Parameters:
    ///   - certificates: The server's certificate, then certificates that may link it to an authority. Without any,
    ///     ``verdict-swift.property`` has the problem ``Problem/other``. ``Certificate/certificates(in:)`` reads them
    ///     from DER or PEM.
    ///   - host: The host that ``certificateNamesHost`` expects. Default: empty, which no certificate names.
    public init(certificates: [Certificate], host: String = "") {
        self.init(
            ChainEvaluation.presented(certificates, by: host, anchors: .system) ?? .none(host: host)
        )
    }

    init(_ presented: PresentedTrust) {
        host = TrustHost.normalized(presented.host) ?? presented.host
        certificates = CertificateChain.linked(presented.chain).compactMap(Certificate.init)
        verdict = Verdict(presented.verdict)
    }

    /// The public keys of ``certificates``, in the same order.
    public var publicKeys: [PublicKey] { certificates.map(\.publicKey) }

    /// Whether the server's own certificate names the host, by RFC 6125. A wildcard is accepted only as a whole label:
    /// `*.example.com`, but not `w*.example.com`.
    public var certificateNamesHost: Bool { certificateNames(host) }

    func certificateNames(_ host: String) -> Bool {
        guard let parsed = certificates.first.flatMap({ ParsedCertificate(Array($0.data)) }) else {
            return false
        }
        return parsed.x509.names(host: host)
    }

    /// Whether the server would be trusted without a policy: ``verdict`` has no problem, and ``certificateNamesHost``
    /// is true.
    public var isTrustedByDefault: Bool { verdict.isTrusted && certificateNamesHost }
}

extension ServerTrust {
    /// OpenSSL's result for a certificate chain.
    public struct Verdict: Hashable, Sendable, CustomStringConvertible {
        /// The problem; `nil` if the chain is trusted.
        public let problem: Problem?
        /// OpenSSL's code: `X509_V_OK` (0), or one of the `X509_V_ERR_…` codes of `X509_verify_cert_error_string(3)`.
        public let code: Int32
        /// The index of the certificate with the problem: 0 is the server's own, 1 its issuer's, and so on.
        public let depth: Int
        /// OpenSSL's message.
        public let message: String

        init(_ verdict: TrustVerdict) {
            problem = Problem(code: verdict.code)
            code = verdict.code
            depth = Int(verdict.depth)
            message = verdict.message
        }

        /// Whether OpenSSL trusts the chain: ``problem`` is `nil`.
        public var isTrusted: Bool { problem == nil }

        /// OpenSSL's message. For a problem, the code and the index of the certificate follow:
        /// `certificate has expired (10, certificate 0)`.
        public var description: String { isTrusted ? message : "\(message) (\(code), certificate \(depth))" }
    }

    /// The problems of a certificate chain.
    public enum Problem: String, Hashable, Sendable, CaseIterable {
        /// A certificate has expired.
        case expired
        /// A certificate is not valid yet, or this machine's clock is wrong.
        case notYetValid
        /// The server's certificate is self-signed.
        case selfSigned
        /// No trusted authority has issued the certificate.
        case unknownIssuer
        /// A signature does not match the issuer's key.
        case badSignature
        /// A certificate was revoked.
        case revoked
        /// The revocation of a certificate cannot be checked, because there is no valid revocation list of its issuer.
        case revocationUnknown
        /// A certificate must not be used for its role in the chain. For example, the server's certificate is only for
        /// clients, or an issuer is not a certificate authority.
        case wrongUse
        /// A key or a signature is weaker than this system's policy allows.
        case tooWeak
        /// Any other problem; ``Verdict/code`` identifies it.
        case other

        /// Converts OpenSSL's code; returns `nil` for `X509_V_OK`.
        init?(code: Int32) {
            switch code {
            case 0: return nil
            case 9: self = .notYetValid
            case 10: self = .expired
            case 18: self = .selfSigned
            case 2, 19, 20, 21, 27: self = .unknownIssuer
            case 4, 6, 7: self = .badSignature
            case 23: self = .revoked
            case 3, 5, 8, 11, 12, 15, 16, 33, 35, 36, 44, 54: self = .revocationUnknown
            case 24, 25, 26, 28, 32, 37, 39, 79: self = .wrongUse
            case 66, 67, 68: self = .tooWeak
            default: self = .other
            }
        }
    }
}

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

/// Normalizes hosts, so that different spellings of a host have the same server trust policy.
enum TrustHost {
    /// Returns a lowercase ASCII name without a trailing dot, or an address in its canonical form without brackets.
    ///
    /// - Returns: `nil` if the text is not a host, for example because it is empty or has a scheme, a port, a path or a
    ///   wildcard.
    static func normalized(_ text: String) -> String? {
        var host = text[...]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        if let address = IPAddress(String(host)) { return address.description }
        guard !host.isEmpty, !host.contains(where: { ":/?#@*[] ".contains($0) }) else { return nil }
        guard let name = URL(string: "https://\(host)/")?.host, name.allSatisfy(\.isASCII) else { return nil }
        let lowered = name.lowercased()
        return lowered.hasSuffix(".") ? String(lowered.dropLast()) : lowered
    }
}
