public import Foundation

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
