internal import NetwatchTransport

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
