public import Foundation

/// An X.509 certificate, in the place of Security's `SecCertificate`.
///
/// Two are equal when they are the same to the byte.
public struct Certificate: Sendable {
    /// The certificate in DER.
    public let data: Data
    /// Whom it is about: `CN=example.com,O=Example` (RFC 4514).
    public let subject: String
    /// Who has signed it, in the same form.
    public let issuer: String
    /// From when on it is valid; `nil` when it has no time there that can be read.
    public let notBefore: Date?
    /// Until when it is valid; `nil` when it has no time there that can be read.
    public let notAfter: Date?
    /// The key that it is about.
    public let publicKey: PublicKey

    /// Makes a certificate of its bytes.
    ///
    /// - Parameter data: DER, or PEM, whose first certificate it is; at most 1 MiB.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        self = try Self.certificates(in: data)[0]
    }

    /// Reads a certificate.
    ///
    /// - Parameter url: A file in DER, or in PEM, whose first certificate it is; at most 1 MiB.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .certificate)
        do throws(InvalidCredential) { try self.init(data: data) } catch { throw error.naming(url.path) }
    }

    /// Reads all certificates of a file, in its order: one in DER, any number in PEM, among whatever else.
    ///
    /// - Parameter url: A file of at most 1 MiB.
    /// - Throws: ``InvalidCredential``, which names the file, also when there is none in it.
    public static func certificates(contentsOf url: URL) throws(InvalidCredential) -> [Certificate] {
        let data = try CredentialFile.read(url, as: .certificate)
        do throws(InvalidCredential) { return try certificates(in: data) } catch {
            throw error.naming(url.path)
        }
    }

    /// Reads all certificates of some bytes, at least one, in their order: one in DER, any number in PEM.
    ///
    /// - Parameter data: At most 1 MiB.
    /// - Throws: ``InvalidCredential``, also when there is none.
    public static func certificates(in data: Data) throws(InvalidCredential) -> [Certificate] {
        try CredentialFile.check(data, as: .certificate)
        let all = try PEM.contents(of: data, labelled: pemLabels, as: .certificate)
        var certificates: [Certificate] = []
        for der in all { certificates.append(try Certificate(der: der)) }
        return certificates
    }

    /// RFC 7468 §5.1 and, as OpenSSL reads them too, the label of older programs.
    static let pemLabels = ["CERTIFICATE", "X509 CERTIFICATE"]

    private init(der: Data) throws(InvalidCredential) {
        guard let parsed = X509Certificate.reading(der), let certificate = Certificate(parsed) else {
            throw InvalidCredential(.certificate, .unparseable)
        }
        self = certificate
    }

    init?(_ parsed: borrowing X509Certificate) {
        guard let data = parsed.der, let key = parsed.publicKey else { return nil }
        // What OpenSSL makes of it, so that it is equal to what a server shows, which comes that way too.
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
    /// Whether both are the same to the byte.
    public static func == (one: Certificate, other: Certificate) -> Bool { one.data == other.data }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(data)
    }
}

extension Certificate: CustomStringConvertible {
    /// Whom it is about and by whom, until when: `CN=example.com (by CN=Example CA, until 2027-01-31T00:00:00Z)`.
    public var description: String {
        "\(subject) (by \(issuer), until \(notAfter?.formatted(.iso8601) ?? "an unknown time"))"
    }

    /// The SHA-256 digest of its bytes: `sha256//` and base64.
    public var fingerprint: String { OpenSSLCoding.fingerprint(of: data) }
}

extension PEM {
    /// The bytes of the blocks with these labels, of which there is at least one; or all bytes, if it is no PEM.
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
