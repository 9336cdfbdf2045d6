internal import CNetwatchCrypto
public import Foundation

/// A public key by itself, in the place of Security's `SecKey`. It outlives the certificates that are made for it.
///
/// Two are equal when they are the same to the byte, kind and parameters included.
public struct PublicKey: Hashable, Sendable {
    /// The key in DER, as a certificate has it: SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
    public let data: Data

    private static let pemLabel = "PUBLIC KEY"
    /// Of blocks that have a key.
    static let pemLabels = [pemLabel] + Certificate.pemLabels

    /// - Parameter data: What OpenSSL has written.
    init(subjectPublicKeyInfo data: Data) {
        self.data = data
    }

    /// Takes a public key from its bytes.
    ///
    /// - Parameter data: SubjectPublicKeyInfo in DER or PEM (`PUBLIC KEY`), or a certificate in either, whose key it
    ///   is; at most 1 MiB. Of several in PEM the first counts.
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

    /// Reads a public key.
    ///
    /// - Parameter url: A file with what ``init(data:)`` takes.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .publicKey)
        do throws(InvalidCredential) { try self.init(data: data) } catch { throw error.naming(url.path) }
    }

    /// What OpenSSL makes of it, so that it is equal to what a certificate has.
    private static func normalized(_ der: Data) -> Data? {
        let parsed = OpenSSLCoding.decoded(
            der,
            by: { d2i_X509_PUBKEY(nil, $0, $1) },
            free: { X509_PUBKEY_free($0) }
        )
        guard let parsed else { return nil }
        defer { X509_PUBKEY_free(parsed) }
        // A key of a kind that is not known cannot be a server's.
        guard callingOpenSSL({ X509_PUBKEY_get0(parsed) }) != nil else { return nil }
        return OpenSSLCoding.encoded { i2d_X509_PUBKEY(parsed, $0) }
    }
}

extension PublicKey: CustomStringConvertible {
    /// The ``fingerprint``.
    public var description: String { fingerprint }

    /// The SHA-256 digest of its bytes: `sha256//` and base64, as curl(1) takes it with `--pinnedpubkey`.
    public var fingerprint: String { OpenSSLCoding.fingerprint(of: data) }
}
