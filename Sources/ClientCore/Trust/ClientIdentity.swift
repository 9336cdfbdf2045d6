public import Foundation
internal import NetwatchTransport

/// Who a client says that it is when a server asks: a certificate, and the private key that proves it.
///
/// The key is in memory, not encrypted, for as long as the value lives. No description shows it.
public struct ClientIdentity: Hashable, Sendable {
    /// The certificate, and those between it and its root, in the order in which they are sent.
    public let certificates: [Certificate]
    let transfer: TransferIdentity

    /// Makes an identity of a certificate and a key.
    ///
    /// - Parameters:
    ///   - certificates: The client's own first, then its issuer's and so on; in PEM, or a single one in DER. At
    ///     most 1 MiB.
    ///   - privateKey: In PEM or DER; at most 1 MiB.
    ///   - passphrase: What the key is encrypted with; at most 1024 bytes. Default: it is not.
    /// - Throws: ``InvalidCredential``, also for a key that is not the first certificate's.
    public init(
        certificates: Data,
        privateKey: Data,
        passphrase: String? = nil
    ) throws(InvalidCredential) {
        let certificates = try Certificate.certificates(in: certificates)
        try self.init(certificates, try PrivateKey.reading(privateKey, passphrase: passphrase))
    }

    /// Reads a certificate and a key.
    ///
    /// - Parameters:
    ///   - certificates: The file with the client's certificate, and those between it and its root.
    ///   - privateKey: The file with the key; it may be the same one.
    ///   - passphrase: What the key is encrypted with. Default: it is not.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(
        certificatesAt certificates: URL,
        privateKeyAt privateKey: URL,
        passphrase: String? = nil
    ) throws(InvalidCredential) {
        let certificates = try Certificate.certificates(contentsOf: certificates)
        let data = try CredentialFile.read(privateKey, as: .privateKey)
        do throws(InvalidCredential) {
            try self.init(certificates, try PrivateKey.reading(data, passphrase: passphrase))
        } catch {
            throw error.naming(privateKey.path)
        }
    }

    /// Reads one file with the certificate and the key: PEM, or PKCS#12 (`.p12`, `.pfx`).
    ///
    /// - Parameters:
    ///   - url: A file of at most 1 MiB.
    ///   - passphrase: What the key, or the archive, is encrypted with. Default: it is not.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL, passphrase: String? = nil) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .identity)
        do throws(InvalidCredential) {
            try self.init(data: data, passphrase: passphrase)
        } catch {
            throw error.naming(url.path)
        }
    }

    /// Makes an identity of the bytes that ``init(contentsOf:passphrase:)`` would read.
    ///
    /// - Parameters:
    ///   - data: PEM or PKCS#12, at most 1 MiB.
    ///   - passphrase: What the key, or the archive, is encrypted with. Default: it is not.
    /// - Throws: ``InvalidCredential``.
    public init(data: Data, passphrase: String? = nil) throws(InvalidCredential) {
        try CredentialFile.check(data, as: .identity)
        if PEM.looksLike(data) {
            try self.init(certificates: data, privateKey: data, passphrase: passphrase)
        } else {
            let archive = try PKCS12Archive.reading(data, passphrase: passphrase)
            try self.init(archive.certificates, archive.key)
        }
    }

    private init(
        _ certificates: [Certificate],
        _ key: borrowing PrivateKey
    ) throws(InvalidCredential) {
        guard let own = certificates.first.flatMap({ Self.isOf($0, key) }) else {
            throw InvalidCredential(.certificate, .unparseable)
        }
        guard own else { throw InvalidCredential(.identity, .keyMismatch) }
        guard let pem = key.pem else { throw InvalidCredential(.privateKey, .unsupported) }
        self.certificates = certificates
        transfer = TransferIdentity(certificates: certificates.flatMap(\.pem), key: pem)
    }

    private static func isOf(_ certificate: Certificate, _ key: borrowing PrivateKey) -> Bool? {
        guard let parsed = X509Certificate.reading(certificate.data) else { return nil }
        return parsed.isOf(key)
    }
}

extension ClientIdentity: CustomStringConvertible, CustomReflectable {
    /// Whom the certificate is about.
    public var description: String { certificates.first?.description ?? "nobody" }

    /// The certificates, and not the key: `dump` shows whatever a mirror does.
    public var customMirror: Mirror { Mirror(self, children: ["certificates": certificates]) }
}
