internal import Foundation
internal import NetwatchEventLoop

/// The encrypted parts of a stored request. The raw value is part of the context of a ciphertext, together with the
/// request's id. A ciphertext is therefore useless in another column or row.
///
/// The context of ``content`` also contains ``BoundContent``. Every encrypted request has this part, and is read only as
/// a whole. It therefore cannot be sent after one of these values was changed.
enum SealedPart: String, Hashable, Sendable {
    /// ``RequestContent``.
    case content
    case body
    case responseHeaders = "response-headers"
    case responseBody = "response-body"

    /// The part in words, for errors.
    var name: String {
        switch self {
        case .content: "header fields"
        case .body: "bytes of the body"
        case .responseHeaders: "header fields of the response"
        case .responseBody: "bytes of the response"
        }
    }

    /// Returns the associated data of a ciphertext: this part's name, the request's id and the bound values. Each value
    /// is preceded by its length, so that different lists of values never have the same text.
    func context(of id: String, _ bound: [String?]) -> String {
        ([rawValue, id] + bound).map { $0.map { "\($0.utf8.count):\($0)," } ?? "-" }.joined()
    }
}

/// The plaintext values of a request that decide what is sent and where. They are authenticated with the encrypted
/// header fields, so that a changed row does not reveal its content to another server.
struct BoundContent {
    let method: String
    let url: String
    let isRepeatable: Bool
    let bodyBytes: Int64
    let credential: String?

    /// The values for ``SealedPart/context(of:_:)``.
    var values: [String?] {
        [method, url, "\(isRepeatable)", "\(bodyBytes)", credential]
    }
}

/// Encrypts the values that a store writes, and decrypts those that it reads.
struct Sealer: Sendable {
    /// The keys; `nil` if the queue was opened without any.
    let keys: KeyRing?
    /// The id of the key that the store used last; `nil` if it was never encrypted.
    let lastKeyID: String?
    /// Whether the store is encrypted, and its key is missing. Such a store accepts no requests, and seals nothing:
    /// under another key, requests would be lost when the right key replaces the wrong one. Only webhooks are stored,
    /// as plaintext: they contain nothing that is encrypted elsewhere.
    let isLocked: Bool

    /// - Parameter isLastKeyNeeded: Whether an unfinished request is encrypted with the key that the store used last.
    ///   Otherwise any other key may replace it.
    init(keys: KeyRing?, lastKeyID: String?, isLastKeyNeeded: Bool = false) {
        (self.keys, self.lastKeyID) = (keys, lastKeyID)
        isLocked = lastKeyID.map { id in keys.map { isLastKeyNeeded && $0[id] == nil } ?? true } ?? false
    }

    /// A sealer for a store without encryption.
    static let none = Sealer(keys: nil, lastKeyID: nil)

    /// The value of the column `key_id` of new rows: the id of the key that seals them, or `nil` for plaintext.
    var keyID: String? { isLocked ? nil : keys?.current.id }

    /// Whether rows may be encrypted. If not, they need not be examined.
    var mayOpen: Bool { keys != nil || lastKeyID != nil }

    /// Throws if the store is encrypted and has no key for new requests.
    ///
    /// - Throws: ``QueueError/Code/encryptionKeyMissing``.
    func requireUnlocked() throws(QueueError) {
        guard isLocked, let lastKeyID else { return }
        let fault =
            keys == nil
            ? "without its encryption key `\(lastKeyID)`"
            : "with the wrong encryption key, \(keys.ids.listed) instead of `\(lastKeyID)`"
        throw QueueError(
            .encryptionKeyMissing,
            "the queue was opened \(fault), and accepts no requests; add the key to the key file and restart, or if "
                + "the key is lost, cancel all unfinished requests and restart with a new key"
        )
    }
}

// MARK: - Values

extension Sealer {
    /// Encrypts bytes. Without a key for new rows they are returned unchanged.
    ///
    /// - Parameter bound: Further values without which the bytes cannot be decrypted.
    func seal(
        _ bytes: Data,
        _ part: SealedPart,
        of id: String,
        _ bound: [String?] = []
    ) throws(QueueError) -> Data {
        guard !isLocked, let keys else { return bytes }
        let context = part.context(of: id, bound)
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try keys.seal(bytes, context: context) }
        }
        do throws(SystemError) { return try result.get() } catch {
            throw QueueError(.storeUnavailable, "a value cannot be encrypted: \(error)")
        }
    }

    /// Encrypts text. The result is Base64, because the columns contain text.
    func seal(
        _ text: String,
        _ part: SealedPart,
        of id: String,
        _ bound: [String?] = []
    ) throws(QueueError) -> String {
        guard keyID != nil else { return text }
        return try seal(Data(text.utf8), part, of: id, bound).base64EncodedString()
    }

    /// Decrypts bytes of a row with a `key_id`.
    func open(
        _ sealed: Data,
        _ part: SealedPart,
        of id: String,
        _ bound: [String?] = []
    ) throws(SealFault) -> Data {
        guard let keys else {
            let keyID = EncryptionKey.id(of: sealed) ?? lastKeyID ?? ""
            throw SealFault.keyMissing(keyID, in: nil, part: part.name)
        }
        return try keys.open(sealed, context: part.context(of: id, bound), part: part.name)
    }

    /// Decrypts text of a row with a `key_id`.
    func open(
        _ sealed: String,
        _ part: SealedPart,
        of id: String,
        _ bound: [String?] = []
    ) throws(SealFault) -> String {
        guard let bytes = Data(base64Encoded: sealed) else {
            throw SealFault(cause: .damaged, part: part.name)
        }
        return String(decoding: try open(bytes, part, of: id, bound), as: UTF8.self)
    }
}
