public import Foundation
internal import NetwatchEventLoop

/// The error for a certificate, key, identity or revocation list that cannot be created from a file or data.
public struct InvalidCredential: Error, Hashable, Sendable {
    /// The kinds of credentials.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An X.509 certificate (RFC 5280).
        case certificate
        /// A public key without a certificate.
        case publicKey = "public key"
        /// A private key.
        case privateKey = "private key"
        /// A client's certificate with its private key.
        case identity = "PKCS#12 archive"
        /// A list of revoked certificates (RFC 5280 §5).
        case revocationList = "list of revoked certificates"
    }

    /// The reasons why a credential cannot be created.
    public enum Reason: Hashable, Sendable {
        /// The file cannot be read. The value is the system's error number, see `errno(3)`.
        case unreadable(errno: Int32)
        /// The data is empty.
        case empty
        /// The data is larger than the limit. The value is the limit in bytes.
        case tooLarge(limit: Int)
        /// The data is neither PEM nor DER of the expected kind, is damaged, or has trailing bytes.
        case unparseable
        /// The data is PEM without a block of the expected kind, or a PKCS#12 archive without a key or without the
        /// key's certificate. The value contains the labels of the PEM blocks, at most eight.
        case notFound(labels: [String])
        /// The key or the archive is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not decrypt the key or the archive.
        case passphraseWrong
        /// The PKCS#12 archive has no digest (MAC). Without a digest, the passphrase cannot be checked, and anyone may
        /// have created the archive.
        case digestMissing
        /// The key does not belong to the certificate.
        case keyMismatch
        /// The installed OpenSSL does not support the algorithm of the key or of its encryption.
        case unsupported
    }

    /// The path of the file; `nil` for data in memory.
    public let file: String?
    /// The kind of credential that was expected.
    public let kind: Kind
    /// The reason for the error.
    public let reason: Reason

    init(_ kind: Kind, _ reason: Reason, file: String? = nil) {
        self.file = file
        self.kind = kind
        self.reason = reason
    }

    func naming(_ file: String?) -> InvalidCredential {
        InvalidCredential(kind, reason, file: self.file ?? file)
    }
}

extension InvalidCredential: LocalizedError, CustomStringConvertible {
    /// The file, the error, and the accepted formats.
    public var description: String { "\(file.map { "`\($0)`" } ?? "the data") \(message)" }

    /// The same as ``description``.
    public var errorDescription: String? { description }

    private var message: String {
        switch reason {
        case .unreadable(let errno): "cannot be read: \(errnoDescription(errno))"
        case .empty: "is empty; \(kind.accepted) is accepted"
        case .tooLarge(let limit): "has more than \(limit) bytes, the maximum for a \(kind.rawValue)"
        case .unparseable: "is not a \(kind.rawValue), or is damaged; \(kind.accepted) is accepted"
        case .notFound(let labels):
            "contains \(Self.list(labels)) but no \(kind.rawValue); \(kind.accepted) is accepted"
        case .passphraseMissing: "contains an encrypted \(kind.rawValue); pass its passphrase"
        case .passphraseWrong: "contains a \(kind.rawValue) that the passphrase does not decrypt"
        case .digestMissing:
            "is a \(kind.rawValue) without a digest (MAC), so its origin cannot be verified; create it with a digest"
        case .keyMismatch: "contains a private key that does not belong to the certificate"
        case .unsupported: "contains a \(kind.rawValue) with an algorithm that OpenSSL does not support"
        }
    }

    private static func list(_ labels: [String]) -> String {
        labels.isEmpty ? "other items" : labels.map { "`\($0)`" }.joined(separator: ", ")
    }
}

extension InvalidCredential.Kind {
    fileprivate var accepted: String {
        switch self {
        case .certificate: "PEM (`-----BEGIN CERTIFICATE-----`) or DER"
        case .publicKey: "PEM (`-----BEGIN PUBLIC KEY-----`) or DER (SubjectPublicKeyInfo), or a certificate"
        case .privateKey: "PEM (`-----BEGIN PRIVATE KEY-----` or similar) or DER"
        case .identity: "PKCS#12, or a certificate and a key in PEM or DER"
        case .revocationList: "PEM (`-----BEGIN X509 CRL-----`) or DER"
        }
    }
}
