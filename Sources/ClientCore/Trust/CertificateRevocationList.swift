internal import CNetwatchCrypto
public import Foundation

/// A list of certificates that their issuer has revoked (RFC 5280 §5).
public struct CertificateRevocationList: Hashable, Sendable {
    /// The list in DER.
    public let data: Data
    /// Whose certificates are on it: `CN=Example CA,O=Example` (RFC 4514).
    public let issuer: String
    /// When it was made; `nil` when it has no time there that can be read.
    public let thisUpdate: Date?
    /// When there will be a newer one, after which this one vouches for nothing; `nil` when it does not say.
    public let nextUpdate: Date?

    /// Takes a list from its bytes.
    ///
    /// - Parameter data: DER, or PEM (`X509 CRL`), whose first list it is; at most 64 MiB.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        self = try Self.lists(in: data)[0]
    }

    /// Reads a list.
    ///
    /// - Parameter url: A file in DER, or in PEM, whose first list it is; at most 64 MiB.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        self = try Self.lists(contentsOf: url)[0]
    }

    /// Reads all lists of a file, at least one, in their order.
    ///
    /// - Parameter url: A file of at most 64 MiB.
    /// - Throws: ``InvalidCredential``, which names the file.
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

    /// Hashes what tells lists apart, and not up to 64 MiB for each request.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(issuer)
        hasher.combine(thisUpdate)
        hasher.combine(data.count)
    }

    var pem: [UInt8] { PEM.encoded(data, label: "X509 CRL") }
}
