internal import CNetwatchCrypto
public import Foundation

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
