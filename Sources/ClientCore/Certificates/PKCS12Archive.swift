internal import CNetwatchCrypto
internal import Foundation

/// The contents of a PKCS#12 archive (RFC 7292): a key, its certificate and other certificates.
struct PKCS12Archive: ~Copyable {
    let key: PrivateKey
    /// The key's certificate, its issuer's, and so on.
    let certificates: [Certificate]

    /// Parses and decrypts an archive. An archive with an empty passphrase can also be read with `nil`.
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

    /// Returns whether the digest (MAC) is correct. It depends on the passphrase, so it is wrong if the passphrase is.
    /// Programs encode an empty passphrase as an empty string or as none, so both are tried.
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
        // The digest was correct, so the passphrase is correct, too. If parsing fails, the cipher must be the problem:
        // old archives use ciphers that OpenSSL 3 supports only with its legacy provider.
        guard callingOpenSSL({ PKCS12_parse(archive, passphrase, &key, &certificate, &others) }) == 1 else {
            throw InvalidCredential(.identity, .unsupported)
        }
        let all = certificates(certificate, others)
        guard let key else { throw InvalidCredential(.privateKey, .notFound(labels: [])) }
        let owned = PrivateKey(owning: key)
        guard !all.isEmpty else { throw InvalidCredential(.certificate, .notFound(labels: [])) }
        return PKCS12Archive(key: owned, certificates: all)
    }

    /// Returns the key's certificate, its issuer's, and so on. The archive stores certificates in any order.
    ///
    /// - Parameters:
    ///   - own: The key's certificate. Without it, the result is empty.
    ///   - others: A stack of the other certificates. This function frees all certificates and the stack.
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
