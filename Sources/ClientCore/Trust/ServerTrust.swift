internal import Foundation
internal import NetwatchTransport

/// What a server shows in a TLS handshake, in the place of Security's `SecTrust`.
public struct ServerTrust: Hashable, Sendable {
    /// The host that was asked for, as ``ServerTrustPolicyManager/serverTrustPolicy(forHost:)`` gets it.
    public let host: String
    /// The server's certificate, the one whose key has signed it, and so on; up to its root, if that is known or was
    /// sent. What a server sends beside these is not here, because it proves nothing.
    public let certificates: [Certificate]
    /// What OpenSSL says of the chain, against this system's authorities, at this time. The host's name has no part
    /// in it; see ``certificateNamesHost``.
    public let verdict: Verdict

    init(_ presented: PresentedTrust) {
        host = TrustHost.normalized(presented.host) ?? presented.host
        certificates = CertificateChain.linked(presented.chain).compactMap(Certificate.init)
        verdict = Verdict(presented.verdict)
    }

    /// The certificates' keys, in their order.
    public var publicKeys: [PublicKey] { certificates.map(\.publicKey) }

    /// Whether the server's own certificate is for the host: RFC 6125, with wildcards for a whole label.
    public var certificateNamesHost: Bool { certificateNames(host) }

    func certificateNames(_ host: String) -> Bool {
        guard let parsed = certificates.first.flatMap({ ParsedCertificate(Array($0.data)) }) else {
            return false
        }
        return parsed.x509.names(host: host)
    }

    /// Whether the server would be trusted without any policy: ``verdict`` and ``certificateNamesHost``.
    public var isTrustedByDefault: Bool { verdict.isTrusted && certificateNamesHost }
}
