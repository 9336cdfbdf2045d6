internal import Foundation

/// Selects the certificates that form a chain from all certificates that a server sends.
enum CertificateChain {
    /// The maximum number of signatures that are verified for a chain. Without a limit, a server could slow the client
    /// down with many certificates of the same name, which are all candidates for the issuer.
    private static let signatureLimit = 32
    /// The maximum number of certificates in a chain. The longest chains in use have five; OpenSSL's limit is 100.
    static let lengthLimit = 16
    /// The maximum number of certificates that are parsed. A server cannot send many more: OpenSSL accepts at most
    /// 100 KiB (`SSL_CTX_set_max_cert_list(3)`), which is about 200 small certificates.
    private static let countLimit = 200

    /// Returns the first certificate, then its issuer's, and so on. Each signature is verified with the issuer's key.
    ///
    /// Pins are compared with these certificates only. Other certificates from the server prove nothing: an attacker
    /// can send any certificate, including a pinned one, in addition to the attacker's own.
    ///
    /// - Parameter certificates: The certificates in DER, the server's own first.
    static func linked(_ certificates: [[UInt8]]) -> [ParsedCertificate] {
        var rest = certificates.prefix(countLimit).compactMap { ParsedCertificate($0) }
        guard !rest.isEmpty else { return [] }
        var chain = [rest.removeFirst()]
        var signatures = 0
        while chain.count < lengthLimit, signatures < signatureLimit {
            let last = chain[chain.count - 1]
            if last.x509.names(asIssuer: last.x509) { break }
            let issuer = rest.firstIndex { candidate in
                guard last.x509.names(asIssuer: candidate.x509), signatures < signatureLimit else {
                    return false
                }
                signatures += 1
                return last.x509.isSigned(by: candidate.x509)
            }
            guard let issuer else { break }
            chain.append(rest.remove(at: issuer))
        }
        return chain
    }
}

/// A reference to a parsed certificate, because an array cannot store the noncopyable ``X509Certificate``.
final class ParsedCertificate {
    let x509: X509Certificate

    /// Parses a certificate in DER; returns `nil` if the bytes are not a certificate.
    init?(_ der: [UInt8]) {
        guard let parsed = X509Certificate.reading(Data(der)) else { return nil }
        x509 = parsed
    }
}

extension Certificate {
    init?(_ parsed: ParsedCertificate) {
        self.init(parsed.x509)
    }
}
