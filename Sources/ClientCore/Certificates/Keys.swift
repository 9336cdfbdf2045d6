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

/// A private key, parsed by OpenSSL. Its owner can use it on any thread, but only on one at a time.
struct PrivateKey: ~Copyable {
    let pointer: OpaquePointer

    /// Takes ownership of a key.
    ///
    /// - Parameter pointer: An `EVP_PKEY`.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// The unencrypted key in PEM; `nil` if OpenSSL cannot encode it.
    var pem: [UInt8]? {
        callingOpenSSL {
            OpenSSLMemory.written { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
        }
    }

    /// Parses a private key in DER, or the first private key in PEM. Other PEM blocks are ignored.
    static func reading(_ data: Data, passphrase: String?) throws(InvalidCredential) -> PrivateKey {
        try CredentialFile.check(data, as: .privateKey)
        guard PEM.looksLike(data) else { return try readingDER(data, passphrase) }
        guard let blocks = PEM.blocks(in: data) else { throw InvalidCredential(.privateKey, .unparseable) }
        guard let block = blocks.first(where: \.isPrivateKey) else {
            throw InvalidCredential(.privateKey, .notFound(labels: blocks.labels))
        }
        return try reading(block, passphrase)
    }

    private static func reading(
        _ block: PEMBlock,
        _ passphrase: String?
    ) throws(InvalidCredential) -> PrivateKey {
        if block.isEncrypted, passphrase == nil { throw InvalidCredential(.privateKey, .passphraseMissing) }
        let key = OpenSSLMemory.reading(block.text) { bio in
            with(passphrase) { PEM_read_bio_PrivateKey(bio, nil, nil, $0) }
        }
        guard let key else {
            throw InvalidCredential(.privateKey, block.isEncrypted ? .passphraseWrong : .unparseable)
        }
        return PrivateKey(owning: key)
    }

    private static func readingDER(
        _ data: Data,
        _ passphrase: String?
    ) throws(InvalidCredential) -> PrivateKey {
        let plain = OpenSSLCoding.decoded(
            data,
            by: { d2i_AutoPrivateKey(nil, $0, $1) },
            free: { EVP_PKEY_free($0) }
        )
        if let plain { return PrivateKey(owning: plain) }
        guard isEncrypted(data) else { throw InvalidCredential(.privateKey, .unparseable) }
        guard let passphrase else { throw InvalidCredential(.privateKey, .passphraseMissing) }
        let decrypted = OpenSSLMemory.reading(data) { bio in
            with(passphrase) { d2i_PKCS8PrivateKey_bio(bio, nil, nil, $0) }
        }
        guard let decrypted else { throw InvalidCredential(.privateKey, .passphraseWrong) }
        return PrivateKey(owning: decrypted)
    }

    /// Returns whether the data is an EncryptedPrivateKeyInfo (RFC 5958 §3).
    private static func isEncrypted(_ der: Data) -> Bool {
        let parsed = OpenSSLCoding.decoded(
            der,
            by: { d2i_X509_SIG(nil, $0, $1) },
            free: { X509_SIG_free($0) }
        )
        if let parsed { X509_SIG_free(parsed) }
        return parsed != nil
    }

    /// Calls `read` with a null-terminated passphrase, which is empty if `passphrase` is `nil`. If `read` passed no
    /// passphrase to OpenSSL, OpenSSL would prompt on the terminal.
    private static func with(
        _ passphrase: String?,
        _ read: (UnsafeMutableRawPointer?) -> OpaquePointer?
    ) -> OpaquePointer? {
        var text = Array((passphrase ?? "").utf8CString)
        return callingOpenSSL { text.withUnsafeMutableBytes { read($0.baseAddress) } }
    }
}

extension PEMBlock {
    /// Whether the label is `PRIVATE KEY`, `ENCRYPTED PRIVATE KEY`, `RSA PRIVATE KEY`, `EC PRIVATE KEY` or similar.
    var isPrivateKey: Bool { label.hasSuffix("PRIVATE KEY") }

    /// Whether the block is encrypted. For PKCS#8, the label says so; for older formats, a header field does (RFC
    /// 1421).
    fileprivate var isEncrypted: Bool {
        label.hasPrefix("ENCRYPTED") || text.range(of: Data("Proc-Type: 4,ENCRYPTED".utf8)) != nil
    }
}

extension [PEMBlock] {
    /// The distinct labels for an error message. At most eight, because a file can have thousands.
    var labels: [String] {
        var seen: [String] = []
        for block in self where !seen.contains(block.label) && seen.count < 8 { seen.append(block.label) }
        return seen
    }
}
