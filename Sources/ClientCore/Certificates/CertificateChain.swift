internal import Foundation

/// Selects the certificates of the server's chain from those that it sends.
enum CertificateChain {
    /// The maximum number of signatures that are verified. The server chooses how many certificates it sends, and all
    /// of them can have the same name.
    private static let signatureLimit = 32
    /// The longest chains in use have five certificates; OpenSSL's limit is 100.
    static let lengthLimit = 16
    /// OpenSSL accepts at most 100 KiB of certificates (`SSL_CTX_set_max_cert_list(3)`), about 200 small ones.
    private static let countLimit = 200

    /// Returns the first certificate, the certificate whose key signed it, and so on.
    ///
    /// Pins are compared with these certificates only. Other certificates from the server prove nothing: a server can
    /// send any certificate in addition to its own, including a pinned one.
    ///
    /// - Parameter certificates: In DER, the server's own certificate first.
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

/// A certificate that can be stored in an array. Not `Sendable`.
final class ParsedCertificate {
    let x509: X509Certificate

    /// Parses a certificate.
    ///
    /// - Parameter der: Returns `nil` if this is not a certificate.
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
