internal import Foundation
internal import NetwatchTransport

/// The certificates that a server presents in a TLS handshake, the counterpart of Security's `SecTrust`.
public struct ServerTrust: Hashable, Sendable {
    /// The requested host, in the form that ``ServerTrustPolicyManager/serverTrustPolicy(forHost:)`` receives.
    public let host: String
    /// The server's certificate, the certificate whose key signed it, and so on, up to the root if that is known or
    /// was sent. Other certificates that the server sends are omitted, because they prove nothing.
    public let certificates: [Certificate]
    /// OpenSSL's result for the chain, against this system's authorities and the current time. It does not include
    /// the host name; see ``certificateNamesHost``.
    public let verdict: Verdict

    init(_ presented: PresentedTrust) {
        host = TrustHost.normalized(presented.host) ?? presented.host
        certificates = CertificateChain.linked(presented.chain).compactMap(Certificate.init)
        verdict = Verdict(presented.verdict)
    }

    /// The public keys of the certificates, in the same order.
    public var publicKeys: [PublicKey] { certificates.map(\.publicKey) }

    /// Whether the server's own certificate names the host (RFC 6125; wildcards only for a whole label).
    public var certificateNamesHost: Bool { certificateNames(host) }

    func certificateNames(_ host: String) -> Bool {
        guard let parsed = certificates.first.flatMap({ ParsedCertificate(Array($0.data)) }) else {
            return false
        }
        return parsed.x509.names(host: host)
    }

    /// Whether the server would be trusted without a policy: ``verdict`` and ``certificateNamesHost``.
    public var isTrustedByDefault: Bool { verdict.isTrusted && certificateNamesHost }
}
