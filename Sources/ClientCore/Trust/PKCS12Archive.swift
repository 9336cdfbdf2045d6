internal import CNetwatchCrypto
internal import Foundation

/// What is in a PKCS#12 archive (RFC 7292): a key, its certificate and others.
struct PKCS12Archive: ~Copyable {
    let key: PrivateKey
    /// The key's own first.
    let certificates: [Certificate]

    static func reading(_ data: Data, passphrase: String?) throws(InvalidCredential) -> PKCS12Archive {
        let parsed = OpenSSLCoding.decoded(
            data,
            by: { d2i_PKCS12(nil, $0, $1) },
            free: { PKCS12_free($0) }
        )
        guard let parsed else { throw InvalidCredential(.identity, .unparseable) }
        defer { PKCS12_free(parsed) }
        guard PKCS12_mac_present(parsed) == 1 else { throw InvalidCredential(.identity, .digestMissing) }
        guard isIntact(parsed, passphrase ?? "") else {
            throw InvalidCredential(.identity, passphrase == nil ? .passphraseMissing : .passphraseWrong)
        }
        return try contents(of: parsed, passphrase ?? "")
    }

    /// Whether its digest, which takes the passphrase to make, is right. Programs write none in two ways.
    private static func isIntact(_ archive: OpaquePointer, _ passphrase: String) -> Bool {
        callingOpenSSL {
            if PKCS12_verify_mac(archive, passphrase, CInt(passphrase.utf8.count)) == 1 { return true }
            return passphrase.isEmpty && PKCS12_verify_mac(archive, nil, 0) == 1
        }
    }

    private static func contents(
        of archive: OpaquePointer,
        _ passphrase: String
    ) throws(InvalidCredential) -> PKCS12Archive {
        var (key, certificate, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
        // The digest was right, so what fails is the cipher: old archives have some that OpenSSL 3 keeps apart.
        guard callingOpenSSL({ PKCS12_parse(archive, passphrase, &key, &certificate, &others) }) == 1 else {
            throw InvalidCredential(.identity, .unsupported)
        }
        let all = certificates(certificate, others)
        guard let key else { throw InvalidCredential(.privateKey, .notFound(labels: [])) }
        let owned = PrivateKey(owning: key)
        guard !all.isEmpty else { throw InvalidCredential(.certificate, .notFound(labels: [])) }
        return PKCS12Archive(key: owned, certificates: all)
    }

    /// Takes all of them over, and keeps the key's own and its issuers: archives have no order.
    private static func certificates(_ own: OpaquePointer?, _ others: OpaquePointer?) -> [Certificate] {
        let all = ([own] + pointers(in: others)).compactMap { $0.flatMap { taken($0) } }
        return own == nil
            ? [] : CertificateChain.linked(all.map { Array($0.data) }).compactMap(Certificate.init)
    }

    private static func taken(_ pointer: OpaquePointer) -> Certificate? {
        let parsed = X509Certificate(owning: pointer)
        return Certificate(parsed)
    }

    private static func pointers(in stack: OpaquePointer?) -> [OpaquePointer?] {
        guard let stack else { return [] }
        defer { OPENSSL_sk_free(stack) }
        return (0..<max(OPENSSL_sk_num(stack), 0)).map {
            OPENSSL_sk_value(stack, $0).map { OpaquePointer($0) }
        }
    }
}
