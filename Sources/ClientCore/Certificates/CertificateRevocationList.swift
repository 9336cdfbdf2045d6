internal import CNetwatchCrypto
public import Foundation

/// A list of certificates that were revoked by their issuer (RFC 5280 §5).
public struct CertificateRevocationList: Hashable, Sendable {
    /// The list in DER.
    public let data: Data
    /// The issuer's distinguished name: `CN=Example CA,O=Example` (RFC 4514).
    public let issuer: String
    /// The time at which the list was issued; `nil` if it has no readable date there.
    public let thisUpdate: Date?
    /// The time by which the next list will be issued. The list is not valid afterwards. `nil` if it has no readable
    /// date there.
    public let nextUpdate: Date?

    /// Creates a list from its bytes.
    ///
    /// - Parameter data: A list in DER or PEM (`X509 CRL`), at most 64 MiB. Of several in PEM, the first is used.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        self = try Self.lists(in: data)[0]
    }

    /// Reads a list from a file.
    ///
    /// - Parameter url: A file in DER or PEM, at most 64 MiB. Of several lists in PEM, the first is used.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        self = try Self.lists(contentsOf: url)[0]
    }

    /// Reads all lists of a file, at least one, in file order.
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

    /// Hashes the fields that distinguish lists, rather than up to 64 MiB for each request.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(issuer)
        hasher.combine(thisUpdate)
        hasher.combine(data.count)
    }

    var pem: [UInt8] { PEM.encoded(data, label: "X509 CRL") }
}
