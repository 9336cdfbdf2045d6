internal import Foundation

/// Which of the certificates that a server shows belong to its own.
enum CertificateChain {
    /// How many signatures are looked at: a server chooses how many certificates it sends, all by one name perhaps.
    private static let signatureLimit = 32
    /// The longest chains in use have five; OpenSSL's limit is 100.
    static let lengthLimit = 16
    /// OpenSSL takes no more than 100 KiB of certificates (`SSL_CTX_set_max_cert_list(3)`), some 200 small ones.
    private static let countLimit = 200

    /// The first certificate, the one whose key has signed it, and so on.
    ///
    /// A pin is looked for among these only. Whatever else a server has sent proves nothing: anybody can send
    /// anybody's certificate beside one of his own, and so have the pinned one among the others.
    ///
    /// - Parameter certificates: In DER, the server's own first.
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

/// A certificate that can be kept in an array. It stays on its thread.
final class ParsedCertificate {
    let x509: X509Certificate

    /// - Parameter der: `nil` comes back for what is no certificate.
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
