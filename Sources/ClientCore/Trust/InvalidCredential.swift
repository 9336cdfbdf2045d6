public import Foundation
internal import NetwatchEventLoop

/// A certificate, a key, an identity or a list of revoked certificates cannot be made of what it was given.
public struct InvalidCredential: Error, Hashable, Sendable {
    /// What was to be made.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An X.509 certificate (RFC 5280).
        case certificate
        /// A public key by itself.
        case publicKey = "public key"
        /// A private key.
        case privateKey = "private key"
        /// A client's certificate and its key.
        case identity = "PKCS#12 archive"
        /// A list of revoked certificates (RFC 5280 §5).
        case revocationList = "list of revoked certificates"
    }

    /// Why it cannot be made.
    public enum Reason: Hashable, Sendable {
        /// The file cannot be read; the number is of `errno(3)`.
        case unreadable(errno: Int32)
        /// There are no bytes.
        case empty
        /// There are more bytes than that.
        case tooLarge(limit: Int)
        /// What it was to be is neither in PEM nor in DER, is damaged, or something follows it.
        case unparseable
        /// It is PEM, but none of its blocks will do. The labels of those that it has, at most eight.
        case notFound(labels: [String])
        /// The key is encrypted, and there is no passphrase.
        case passphraseMissing
        /// The key is encrypted with another passphrase.
        case passphraseWrong
        /// The archive has no digest (MAC) that the passphrase could be checked by, and its content be told from
        /// somebody else's.
        case digestMissing
        /// The key is not the certificate's.
        case keyMismatch
        /// It is of a kind that this OpenSSL does not know.
        case unsupported
    }

    /// The file; `nil` for bytes that were in memory.
    public let file: String?
    /// What was to be made.
    public let kind: Kind
    /// Why it cannot be made.
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
    /// The file, what is wrong with it, and what is accepted.
    public var description: String { "\(file.map { "`\($0)`" } ?? "the data") \(words)" }

    /// The same as ``description``.
    public var errorDescription: String? { description }

    private var words: String {
        switch reason {
        case .unreadable(let errno): "cannot be read: \(errnoDescription(errno))"
        case .empty: "is empty; \(kind.accepted) is accepted"
        case .tooLarge(let limit): "has more than \(limit) bytes, too many for a \(kind.rawValue)"
        case .unparseable: "is no \(kind.rawValue), or is damaged; \(kind.accepted) is accepted"
        case .notFound(let labels):
            "has no \(kind.rawValue), but \(Self.list(labels)); \(kind.accepted) is accepted"
        case .passphraseMissing: "has a \(kind.rawValue) that is encrypted; pass its passphrase"
        case .passphraseWrong: "has a \(kind.rawValue) that the passphrase does not decrypt"
        case .digestMissing:
            "has a \(kind.rawValue) without a digest (MAC), so that nobody can tell whose it is; make it with one"
        case .keyMismatch: "has a private key that is not the certificate's"
        case .unsupported: "has a \(kind.rawValue) of a kind that this OpenSSL does not know"
        }
    }

    private static func list(_ labels: [String]) -> String {
        labels.isEmpty ? "something else" : labels.map { "`\($0)`" }.joined(separator: ", ")
    }
}

extension InvalidCredential.Kind {
    fileprivate var accepted: String {
        switch self {
        case .certificate: "PEM (`-----BEGIN CERTIFICATE-----`) or DER"
        case .publicKey: "PEM (`-----BEGIN PUBLIC KEY-----`) or DER (SubjectPublicKeyInfo), or a certificate"
        case .privateKey: "PEM (`-----BEGIN PRIVATE KEY-----` or its like) or DER"
        case .identity: "PKCS#12, or a certificate and a key in PEM or DER"
        case .revocationList: "PEM (`-----BEGIN X509 CRL-----`) or DER"
        }
    }
}
