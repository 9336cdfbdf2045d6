internal import NetwatchTransport

extension ServerTrust {
    /// What OpenSSL says of a chain of certificates.
    public struct Verdict: Hashable, Sendable, CustomStringConvertible {
        /// What is wrong; `nil` when nothing is.
        public let problem: Problem?
        /// `X509_V_OK` (0) or one of `X509_V_ERR_…` (`X509_verify_cert_error_string(3)`).
        public let code: Int32
        /// Which certificate it is about: 0 is the server's own, 1 its issuer's, …
        public let depth: Int
        /// OpenSSL's words.
        public let message: String

        init(_ verdict: TrustVerdict) {
            problem = Problem(code: verdict.code)
            code = verdict.code
            depth = Int(verdict.depth)
            message = verdict.message
        }

        /// Whether nothing is wrong.
        public var isTrusted: Bool { problem == nil }

        /// OpenSSL's words, its code and the certificate they are about:
        /// `certificate has expired (10, certificate 0)`.
        public var description: String { isTrusted ? message : "\(message) (\(code), certificate \(depth))" }
    }

    /// What can be wrong with a chain of certificates.
    public enum Problem: String, Hashable, Sendable, CaseIterable {
        /// A certificate is not valid any more.
        case expired
        /// A certificate is not valid yet; this machine's clock may be wrong.
        case notYetValid
        /// The server's certificate vouches for itself.
        case selfSigned
        /// Nobody who may vouch for a server has vouched for this one.
        case unknownIssuer
        /// A signature is not the issuer's.
        case badSignature
        /// A certificate was revoked.
        case revoked
        /// There is no list of revoked certificates by the issuer, or none that holds.
        case revocationUnknown
        /// A certificate is not for what it is used for here: it is no server's, or no authority's.
        case wrongUse
        /// A key or a signature is too weak for this system's policy.
        case tooWeak
        /// Something else, see ``Verdict/code``.
        case other

        /// - Parameter code: `nil` comes back for `X509_V_OK`.
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
