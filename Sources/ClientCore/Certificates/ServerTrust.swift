internal import Foundation
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
