internal import CNetwatchCrypto
public import Foundation
internal import NetwatchEventLoop

/// An X.509 certificate, the counterpart of `SecCertificate` in Apple's Security framework.
///
/// Two certificates are equal if their DER bytes are equal.
public struct Certificate: Sendable {
    /// The certificate in DER.
    public let data: Data
    /// The subject's distinguished name in the format of RFC 4514: `CN=example.com,O=Example`.
    public let subject: String
    /// The issuer's distinguished name, in the same format.
    public let issuer: String
    /// The start of the validity period; `nil` if the date cannot be read.
    public let notBefore: Date?
    /// The end of the validity period; `nil` if the date cannot be read.
    public let notAfter: Date?
    /// The subject's public key.
    public let publicKey: PublicKey

    /// Creates a certificate from its bytes.
    ///
    /// - Parameter data: A certificate in DER or PEM, at most 1 MiB. If PEM contains several, the first is used.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        self = try Self.certificates(in: data)[0]
    }

    /// Reads a certificate from a file.
    ///
    /// - Parameter url: A file in DER or PEM of at most 1 MiB. If PEM contains several certificates, the first is used.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .certificate)
        do throws(InvalidCredential) { try self.init(data: data) } catch { throw error.naming(url.path) }
    }

    /// Reads all certificates of a file, in file order.
    ///
    /// - Parameter url: A file of at most 1 MiB, with one certificate in DER or any number in PEM. Other PEM blocks are
    ///   ignored.
    /// - Throws: ``InvalidCredential``, which names the file. A file without certificates is also an error.
    public static func certificates(contentsOf url: URL) throws(InvalidCredential) -> [Certificate] {
        let data = try CredentialFile.read(url, as: .certificate)
        do throws(InvalidCredential) { return try certificates(in: data) } catch {
            throw error.naming(url.path)
        }
    }

    /// Parses all certificates of the data, in the order of the data.
    ///
    /// - Parameter data: One certificate in DER or any number in PEM, at most 1 MiB. Other PEM blocks are ignored.
    /// - Throws: ``InvalidCredential``. Data without certificates is also an error.
    public static func certificates(in data: Data) throws(InvalidCredential) -> [Certificate] {
        try CredentialFile.check(data, as: .certificate)
        let all = try PEM.contents(of: data, labelled: pemLabels, as: .certificate)
        var certificates: [Certificate] = []
        for der in all { certificates.append(try Certificate(der: der)) }
        return certificates
    }

    /// The PEM labels of certificates: the label of RFC 7468 §5.1, and the label that older programs write. OpenSSL
    /// accepts both.
    static let pemLabels = ["CERTIFICATE", "X509 CERTIFICATE"]

    private init(der: Data) throws(InvalidCredential) {
        guard let parsed = X509Certificate.reading(der), let certificate = Certificate(parsed) else {
            throw InvalidCredential(.certificate, .unparseable)
        }
        self = certificate
    }

    init?(_ parsed: borrowing X509Certificate) {
        guard let data = parsed.der, let key = parsed.publicKey else { return nil }
        // OpenSSL has encoded these bytes, as it does for the certificates of a handshake. Equal certificates therefore
        // have equal bytes.
        self.data = data
        subject = parsed.subject
        issuer = parsed.issuer
        notBefore = parsed.notBefore
        notAfter = parsed.notAfter
        publicKey = PublicKey(subjectPublicKeyInfo: key)
    }

    var pem: [UInt8] { PEM.encoded(data, label: "CERTIFICATE") }
}

extension Certificate: Hashable {
    /// Returns whether the DER bytes of both certificates are equal.
    public static func == (one: Certificate, other: Certificate) -> Bool { one.data == other.data }

    /// Hashes the DER bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(data)
    }
}

extension Certificate: CustomStringConvertible {
    /// The subject, the issuer and the end of the validity period:
    /// `CN=example.com (by CN=Example CA, until 2027-01-31T00:00:00Z)`.
    public var description: String {
        "\(subject) (by \(issuer), until \(notAfter?.formatted(.iso8601) ?? "an unknown time"))"
    }

    /// The SHA-256 digest of ``data``: `sha256//` and base64.
    public var fingerprint: String { OpenSSLCoding.fingerprint(of: data) }
}

extension PEM {
    /// Returns the contents of the blocks with these labels. Data without a BEGIN line counts as DER and is returned as
    /// a whole.
    ///
    /// - Returns: At least one element.
    /// - Throws: ``InvalidCredential`` if the PEM is damaged, or has no block with these labels.
    static func contents(
        of data: Data,
        labelled labels: [String],
        as kind: InvalidCredential.Kind
    ) throws(InvalidCredential) -> [Data] {
        guard looksLike(data) else { return [data] }
        guard let blocks = blocks(in: data) else { throw InvalidCredential(kind, .unparseable) }
        let chosen = blocks.filter { labels.contains($0.label) }
        guard !chosen.isEmpty else { throw InvalidCredential(kind, .notFound(labels: blocks.labels)) }
        var contents: [Data] = []
        for block in chosen {
            guard let der = block.contents else { throw InvalidCredential(kind, .unparseable) }
            contents.append(der)
        }
        return contents
    }
}

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

/// A certificate, parsed by OpenSSL. Its owner can use it on any thread, but only on one at a time.
struct X509Certificate: ~Copyable {
    let pointer: OpaquePointer

    /// Takes ownership of a certificate.
    ///
    /// - Parameter pointer: An `X509`.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        X509_free(pointer)
    }

    /// Parses a certificate in DER; returns `nil` if the data is not a certificate.
    static func reading(_ der: Data) -> X509Certificate? {
        OpenSSLCoding.decoded(der, by: { d2i_X509(nil, $0, $1) }, free: { X509_free($0) })
            .map { X509Certificate(owning: $0) }
    }

    var der: Data? { OpenSSLCoding.encoded { i2d_X509(pointer, $0) } }
    var subject: String { OpenSSLCoding.text(of: X509_get_subject_name(pointer)) }
    var issuer: String { OpenSSLCoding.text(of: X509_get_issuer_name(pointer)) }
    var notBefore: Date? { OpenSSLCoding.date(X509_get0_notBefore(pointer)) }
    var notAfter: Date? { OpenSSLCoding.date(X509_get0_notAfter(pointer)) }
    /// The certificate's SubjectPublicKeyInfo in DER.
    var publicKey: Data? {
        OpenSSLCoding.encoded { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), $0) }
    }

    /// Returns whether the certificate was issued for the private key.
    func isOf(_ key: borrowing PrivateKey) -> Bool {
        callingOpenSSL { X509_check_private_key(pointer, key.pointer) == 1 }
    }

    /// Returns whether this certificate names the other certificate's subject as its issuer.
    func names(asIssuer other: borrowing X509Certificate) -> Bool {
        X509_NAME_cmp(X509_get_issuer_name(pointer), X509_get_subject_name(other.pointer)) == 0
    }

    /// Returns whether the other certificate's key signed this certificate.
    func isSigned(by other: borrowing X509Certificate) -> Bool {
        callingOpenSSL {
            guard let key = X509_get0_pubkey(other.pointer) else { return false }
            return X509_verify(pointer, key) == 1
        }
    }

    /// Returns whether the certificate names the host, by RFC 6125. As in libcurl, a wildcard is accepted only as a
    /// whole label.
    func names(host: String) -> Bool {
        callingOpenSSL {
            if IPAddress(host) != nil { return X509_check_ip_asc(pointer, host, 0) == 1 }
            let flags = netwatch_x509_no_partial_wildcards
            return X509_check_host(pointer, host, UInt(host.utf8.count), flags, nil) == 1
        }
    }
}

/// A list of the certificates that an issuer has revoked (RFC 5280 §5).
public struct CertificateRevocationList: Hashable, Sendable {
    /// The list in DER.
    public let data: Data
    /// The issuer's distinguished name in the format of RFC 4514: `CN=Example CA,O=Example`.
    public let issuer: String
    /// The time at which the issuer issued the list; `nil` if this date of the list cannot be read.
    public let thisUpdate: Date?
    /// The time by which the issuer will issue the next list. This list is not valid afterwards. `nil` if this date of
    /// the list is missing or cannot be read.
    public let nextUpdate: Date?

    /// Creates a list from its bytes.
    ///
    /// - Parameter data: A list in DER or PEM (label `X509 CRL`), at most 64 MiB. If PEM contains several lists, the
    ///   first is used.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        self = try Self.lists(in: data)[0]
    }

    /// Reads a list from a file.
    ///
    /// - Parameter url: A file in DER or PEM of at most 64 MiB. If PEM contains several lists, the first is used.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        self = try Self.lists(contentsOf: url)[0]
    }

    /// Reads all lists of a file, in file order.
    ///
    /// - Parameter url: A file of at most 64 MiB, with one list in DER or any number in PEM.
    /// - Returns: At least one list.
    /// - Throws: ``InvalidCredential``, which names the file. A file without lists is also an error.
    public static func lists(contentsOf url: URL) throws(InvalidCredential) -> [CertificateRevocationList] {
        let limit = CredentialFile.revocationListLimit
        let data = try CredentialFile.read(url, as: .revocationList, limit: limit)
        do throws(InvalidCredential) { return try lists(in: data) } catch { throw error.naming(url.path) }
    }

    private static func lists(in data: Data) throws(InvalidCredential) -> [CertificateRevocationList] {
        try CredentialFile.check(data, as: .revocationList, limit: CredentialFile.revocationListLimit)
        var lists: [CertificateRevocationList] = []
        for der in try PEM.contents(of: data, labelled: ["X509 CRL"], as: .revocationList) {
            lists.append(try CertificateRevocationList(der: der))
        }
        return lists
    }

    private init(der: Data) throws(InvalidCredential) {
        let parsed = OpenSSLCoding.decoded(
            der,
            by: { d2i_X509_CRL(nil, $0, $1) },
            free: { X509_CRL_free($0) }
        )
        guard let parsed else { throw InvalidCredential(.revocationList, .unparseable) }
        defer { X509_CRL_free(parsed) }
        data = der
        issuer = OpenSSLCoding.text(of: X509_CRL_get_issuer(parsed))
        thisUpdate = OpenSSLCoding.date(X509_CRL_get0_lastUpdate(parsed))
        nextUpdate = OpenSSLCoding.date(X509_CRL_get0_nextUpdate(parsed))
    }

    /// Hashes the issuer, the time and the size. Hashing the whole list could read 64 MiB for each request.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(issuer)
        hasher.combine(thisUpdate)
        hasher.combine(data.count)
    }

    var pem: [UInt8] { PEM.encoded(data, label: "X509 CRL") }
}
