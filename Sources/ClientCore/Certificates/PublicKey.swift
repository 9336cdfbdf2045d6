internal import CNetwatchCrypto
public import Foundation

/// A public key without a certificate, the counterpart of `SecKey` in Apple's Security framework. A renewed
/// certificate can have the key of its predecessor.
///
/// Two keys are equal if their DER bytes are equal, including algorithm and parameters.
public struct PublicKey: Hashable, Sendable {
    /// The key as a SubjectPublicKeyInfo in DER (RFC 5280 §4.1.2.7), as certificates contain it.
    public let data: Data

    private static let pemLabel = "PUBLIC KEY"
    /// The labels of PEM blocks that contain a public key.
    static let pemLabels = [pemLabel] + Certificate.pemLabels

    /// - Parameter data: DER written by OpenSSL.
    init(subjectPublicKeyInfo data: Data) {
        self.data = data
    }

    /// Creates a public key from its bytes.
    ///
    /// - Parameter data: A SubjectPublicKeyInfo (PEM label `PUBLIC KEY`) or a certificate, in DER or PEM. At most
    ///   1 MiB. If PEM contains several of these blocks, the first is used.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data) throws(InvalidCredential) {
        try CredentialFile.check(data, as: .publicKey)
        let first = PEM.blocks(in: data)?.first { Self.pemLabels.contains($0.label) }
        if let first, first.label != Self.pemLabel {
            self = try Certificate(data: first.text).publicKey
            return
        }
        if first == nil, let certificate = try? Certificate(data: data) {
            self = certificate.publicKey
            return
        }
        let der = try PEM.contents(of: data, labelled: [Self.pemLabel], as: .publicKey)[0]
        guard let key = Self.normalized(der) else { throw InvalidCredential(.publicKey, .unparseable) }
        self.data = key
    }

    /// Reads a public key from a file.
    ///
    /// - Parameter url: A file with contents that ``init(data:)`` accepts.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .publicKey)
        do throws(InvalidCredential) { try self.init(data: data) } catch { throw error.naming(url.path) }
    }

    /// Returns the key as OpenSSL encodes it. The keys of certificates are encoded by OpenSSL, too, so equal keys have
    /// equal bytes.
    private static func normalized(_ der: Data) -> Data? {
        let parsed = OpenSSLCoding.decoded(
            der,
            by: { d2i_X509_PUBKEY(nil, $0, $1) },
            free: { X509_PUBKEY_free($0) }
        )
        guard let parsed else { return nil }
        defer { X509_PUBKEY_free(parsed) }
        // `X509_PUBKEY_get0` fails if OpenSSL does not know the key's algorithm. No server could present such a key.
        guard callingOpenSSL({ X509_PUBKEY_get0(parsed) }) != nil else { return nil }
        return OpenSSLCoding.encoded { i2d_X509_PUBKEY(parsed, $0) }
    }
}

extension PublicKey: CustomStringConvertible {
    /// The ``fingerprint``.
    public var description: String { fingerprint }

    /// The SHA-256 digest of ``data`` in the format of curl's `--pinnedpubkey`: `sha256//` and base64.
    public var fingerprint: String { OpenSSLCoding.fingerprint(of: data) }
}
