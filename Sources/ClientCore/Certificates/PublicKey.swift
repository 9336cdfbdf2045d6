internal import CNetwatchCrypto
public import Foundation

/// A public key without a certificate, the counterpart of Security's `SecKey`. It can outlive the certificates that
/// are issued for it.
///
/// Two keys are equal if their DER bytes are equal, including algorithm and parameters.
public struct PublicKey: Hashable, Sendable {
    /// The key in DER, as in a certificate: SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
    public let data: Data

    private static let pemLabel = "PUBLIC KEY"
    /// The labels of blocks that contain a public key.
    static let pemLabels = [pemLabel] + Certificate.pemLabels

    /// - Parameter data: DER written by OpenSSL.
    init(subjectPublicKeyInfo data: Data) {
        self.data = data
    }

    /// Creates a public key from its bytes.
    ///
    /// - Parameter data: A SubjectPublicKeyInfo in DER or PEM (`PUBLIC KEY`), or a certificate in DER or PEM; at most
    ///   1 MiB. Of several PEM blocks, the first is used.
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

    /// Returns OpenSSL's re-encoding of the key, so that it equals the key of a certificate.
    private static func normalized(_ der: Data) -> Data? {
        let parsed = OpenSSLCoding.decoded(
            der,
            by: { d2i_X509_PUBKEY(nil, $0, $1) },
            free: { X509_PUBKEY_free($0) }
        )
        guard let parsed else { return nil }
        defer { X509_PUBKEY_free(parsed) }
        // A server cannot use a key of an unknown algorithm.
        guard callingOpenSSL({ X509_PUBKEY_get0(parsed) }) != nil else { return nil }
        return OpenSSLCoding.encoded { i2d_X509_PUBKEY(parsed, $0) }
    }
}

extension PublicKey: CustomStringConvertible {
    /// The ``fingerprint``.
    public var description: String { fingerprint }

    /// The SHA-256 digest of the DER bytes: `sha256//` and base64, the format of curl's `--pinnedpubkey`.
    public var fingerprint: String { OpenSSLCoding.fingerprint(of: data) }
}
