internal import CNetwatchCrypto
public import Foundation
internal import NetwatchTransport

/// A certificate and its private key, with which a client authenticates to a server that asks for a certificate.
///
/// The value holds the unencrypted key in memory for as long as it exists. Its description and mirror omit the key.
///
/// ```swift
/// let identity = try ClientIdentity(contentsOf: archiveURL, passphrase: "secret")
/// let manager = ServerTrustPolicyManager(policies: [:], clientIdentities: ["api.example.com": identity])
/// let session = SessionManager(serverTrustPolicyManager: manager)
/// ```
public struct ClientIdentity: Hashable, Sendable {
    /// The client's certificate and the intermediates up to its root, in the order in which netwatch sends them.
    public let certificates: [Certificate]
    let transfer: TransferIdentity

    /// Creates an identity from a certificate and a key.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate, then its issuer's, and so on, in PEM; or the client's certificate
    ///     alone in DER. At most 1 MiB.
    ///   - privateKey: The key in PEM or DER, at most 1 MiB.
    ///   - passphrase: The passphrase of the key, at most 1024 bytes. Default: `nil`, the key is not encrypted.
    /// - Throws: ``InvalidCredential``, for example if the key does not belong to the first certificate.
    public init(
        certificates: Data,
        privateKey: Data,
        passphrase: String? = nil
    ) throws(InvalidCredential) {
        let certificates = try Certificate.certificates(in: certificates)
        try self.init(certificates, try PrivateKey.reading(privateKey, passphrase: passphrase))
    }

    /// Reads a certificate and a key from files.
    ///
    /// - Parameters:
    ///   - certificates: A file with the client's certificate first, then its issuer's, and so on.
    ///   - privateKey: A file with the key. It may be the same file.
    ///   - passphrase: The passphrase of the key. Default: `nil`, the key is not encrypted.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(
        certificatesAt certificates: URL,
        privateKeyAt privateKey: URL,
        passphrase: String? = nil
    ) throws(InvalidCredential) {
        let certificates = try Certificate.certificates(contentsOf: certificates)
        let data = try CredentialFile.read(privateKey, as: .privateKey)
        do throws(InvalidCredential) {
            try self.init(certificates, try PrivateKey.reading(data, passphrase: passphrase))
        } catch {
            throw error.naming(privateKey.path)
        }
    }

    /// Reads a certificate and a key from one file.
    ///
    /// - Parameters:
    ///   - url: A file in PEM, or a PKCS#12 archive (`.p12`, `.pfx`), of at most 1 MiB.
    ///   - passphrase: The passphrase of the key or the archive. Default: `nil`, neither is encrypted.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL, passphrase: String? = nil) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .identity)
        do throws(InvalidCredential) {
            try self.init(data: data, passphrase: passphrase)
        } catch {
            throw error.naming(url.path)
        }
    }

    /// Creates an identity from the contents of a file that ``init(contentsOf:passphrase:)`` accepts.
    ///
    /// - Parameters:
    ///   - data: PEM or a PKCS#12 archive, at most 1 MiB.
    ///   - passphrase: The passphrase of the key or the archive. Default: `nil`, neither is encrypted.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data, passphrase: String? = nil) throws(InvalidCredential) {
        try CredentialFile.check(data, as: .identity)
        if PEM.looksLike(data) {
            try self.init(certificates: data, privateKey: data, passphrase: passphrase)
        } else {
            let archive = try PKCS12Archive.reading(data, passphrase: passphrase)
            try self.init(archive.certificates, archive.key)
        }
    }

    private init(
        _ certificates: [Certificate],
        _ key: borrowing PrivateKey
    ) throws(InvalidCredential) {
        guard let own = certificates.first.flatMap({ Self.isOf($0, key) }) else {
            throw InvalidCredential(.certificate, .unparseable)
        }
        guard own else { throw InvalidCredential(.identity, .keyMismatch) }
        guard let pem = key.pem else { throw InvalidCredential(.privateKey, .unsupported) }
        self.certificates = certificates
        transfer = TransferIdentity(certificates: certificates.flatMap(\.pem), key: pem)
    }

    /// Returns whether the key belongs to the certificate; `nil` if OpenSSL cannot parse the certificate.
    private static func isOf(_ certificate: Certificate, _ key: borrowing PrivateKey) -> Bool? {
        guard let parsed = X509Certificate.reading(certificate.data) else { return nil }
        return parsed.isOf(key)
    }
}

extension ClientIdentity: CustomStringConvertible, CustomReflectable {
    /// The description of the client's certificate.
    public var description: String { certificates.first?.description ?? "no certificate" }

    /// A mirror without the key, because `dump` prints everything that a mirror contains.
    public var customMirror: Mirror { Mirror(self, children: ["certificates": certificates]) }
}

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
