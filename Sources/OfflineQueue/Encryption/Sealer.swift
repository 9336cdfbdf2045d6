internal import Foundation
internal import NetwatchEventLoop

/// The encrypted parts of a stored request. The raw value is part of the context of a ciphertext, together with the
/// request's id. A ciphertext is therefore useless in another column or row.
enum SealedPart: String, Hashable, Sendable {
    case headers
    case key
    case digest
    case body
    case responseHeaders = "response-headers"
    case responseBody = "response-body"

    /// The part in words, for errors.
    var name: String {
        switch self {
        case .headers: "header fields"
        case .key: "bytes of the idempotency key"
        case .digest: "bytes of the body's hash"
        case .body: "bytes of the body"
        case .responseHeaders: "header fields of the response"
        case .responseBody: "bytes of the response"
        }
    }

    func context(of id: String) -> String { "\(rawValue):\(id)" }
}

/// Encrypts the values that a store writes, and decrypts those that it reads.
struct Sealer: Sendable {
    /// The keys; `nil` if the queue was opened without any.
    let keys: KeyRing?
    /// The id of the key that the store used last; `nil` if it was never encrypted.
    let lastKeyID: String?

    /// A sealer for a store without encryption.
    static let none = Sealer(keys: nil, lastKeyID: nil)

    /// The value of the column `key_id` of new rows: the id of the key that seals them, or `nil` for plaintext.
    var keyID: String? { keys?.current.id }

    /// Whether rows may be encrypted. If not, they need not be examined.
    var mayOpen: Bool { keys != nil || lastKeyID != nil }

    /// Whether the store is encrypted, but its keys are missing. Such a store accepts no requests. Only webhooks are
    /// stored as plaintext: they contain nothing that is encrypted elsewhere.
    var isLocked: Bool { keys == nil && lastKeyID != nil }

    /// Throws if the store is encrypted and has no key for new requests.
    ///
    /// - Throws: ``QueueError/Code/encryptionKeyMissing``.
    func requireUnlocked() throws(QueueError) {
        guard isLocked, let lastKeyID else { return }
        throw QueueError(
            .encryptionKeyMissing,
            "the queue is encrypted, and was opened without its encryption key `\(lastKeyID)`; stored requests are kept"
        )
    }
}

// MARK: - Values

extension Sealer {
    /// Encrypts bytes. Without keys they are returned unchanged.
    func seal(_ bytes: Data, _ part: SealedPart, of id: String) throws(QueueError) -> Data {
        guard let keys else { return bytes }
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try keys.seal(bytes, context: part.context(of: id)) }
        }
        do throws(SystemError) { return try result.get() } catch {
            throw QueueError(.storeUnavailable, "a value cannot be encrypted: \(error)")
        }
    }

    /// Encrypts text. The result is Base64, because the columns contain text.
    func seal(_ text: String, _ part: SealedPart, of id: String) throws(QueueError) -> String {
        guard keys != nil else { return text }
        return try seal(Data(text.utf8), part, of: id).base64EncodedString()
    }

    /// Decrypts bytes of a row with a `key_id`.
    func open(_ sealed: Data, _ part: SealedPart, of id: String) throws(SealFault) -> Data {
        guard let keys else {
            let keyID = EncryptionKey.id(of: sealed) ?? lastKeyID ?? ""
            throw SealFault(cause: .keyMissing(id: keyID), part: part.name)
        }
        return try keys.open(sealed, context: part.context(of: id), part: part.name)
    }

    /// Decrypts text of a row with a `key_id`.
    func open(_ sealed: String, _ part: SealedPart, of id: String) throws(SealFault) -> String {
        guard let bytes = Data(base64Encoded: sealed) else {
            throw SealFault(cause: .damaged, part: part.name)
        }
        return String(decoding: try open(bytes, part, of: id), as: UTF8.self)
    }
}
