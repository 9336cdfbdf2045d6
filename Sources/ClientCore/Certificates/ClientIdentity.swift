public import Foundation
internal import NetwatchTransport

/// A certificate and its private key, with which a client authenticates to a server that asks for a certificate.
///
/// The value holds the unencrypted key in memory for as long as it exists. Its description and mirror omit the key.
///
/// ```swift
/// let identity = try ClientIdentity(contentsOf: archiveURL, passphrase: "secret")
/// let manager = ServerTrustPolicyManager(policies: [:], clientIdentities: ["api.example.com": identity])
/// let session = SessionManager(serverTrustPolicyManager: manager)
/// ```
public struct ClientIdentity: Hashable, Sendable {
    /// The client's certificate and the intermediates up to its root, in the order in which netwatch sends them.
    public let certificates: [Certificate]
    let transfer: TransferIdentity

    /// Creates an identity from a certificate and a key.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate, then its issuer's, and so on, in PEM; or the client's certificate
    ///     alone in DER. At most 1 MiB.
    ///   - privateKey: The key in PEM or DER, at most 1 MiB.
    ///   - passphrase: The passphrase of the key, at most 1024 bytes. Default: `nil`, the key is not encrypted.
    /// - Throws: ``InvalidCredential``, for example if the key does not belong to the first certificate.
    public init(
        certificates: Data,
        privateKey: Data,
        passphrase: String? = nil
    ) throws(InvalidCredential) {
        let certificates = try Certificate.certificates(in: certificates)
        try self.init(certificates, try PrivateKey.reading(privateKey, passphrase: passphrase))
    }

    /// Reads a certificate and a key from files.
    ///
    /// - Parameters:
    ///   - certificates: A file with the client's certificate first, then its issuer's, and so on.
    ///   - privateKey: A file with the key. It may be the same file.
    ///   - passphrase: The passphrase of the key. Default: `nil`, the key is not encrypted.
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

    /// Reads a certificate and a key from one file.
    ///
    /// - Parameters:
    ///   - url: A file in PEM, or a PKCS#12 archive (`.p12`, `.pfx`), of at most 1 MiB.
    ///   - passphrase: The passphrase of the key or the archive. Default: `nil`, neither is encrypted.
    /// - Throws: ``InvalidCredential``, which names the file.
    public init(contentsOf url: URL, passphrase: String? = nil) throws(InvalidCredential) {
        let data = try CredentialFile.read(url, as: .identity)
        do throws(InvalidCredential) {
            try self.init(data: data, passphrase: passphrase)
        } catch {
            throw error.naming(url.path)
        }
    }

    /// Creates an identity from the contents of a file that ``init(contentsOf:passphrase:)`` accepts.
    ///
    /// - Parameters:
    ///   - data: PEM or a PKCS#12 archive, at most 1 MiB.
    ///   - passphrase: The passphrase of the key or the archive. Default: `nil`, neither is encrypted.
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

    /// Returns whether the key belongs to the certificate; `nil` if OpenSSL cannot parse the certificate.
    private static func isOf(_ certificate: Certificate, _ key: borrowing PrivateKey) -> Bool? {
        guard let parsed = X509Certificate.reading(certificate.data) else { return nil }
        return parsed.isOf(key)
    }
}

extension ClientIdentity: CustomStringConvertible, CustomReflectable {
    /// The description of the client's certificate.
    public var description: String { certificates.first?.description ?? "no certificate" }

    /// A mirror without the key, because `dump` prints everything that a mirror contains.
    public var customMirror: Mirror { Mirror(self, children: ["certificates": certificates]) }
}
