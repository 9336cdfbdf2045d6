internal import Foundation
internal import NetwatchEventLoop

/// The keys of a queue. The first one encrypts, and all of them decrypt.
package final class KeyRing: Sendable {
    let keys: [EncryptionKey]

    /// - Parameter keys: At least one key, with different ids.
    init(_ keys: [EncryptionKey]) {
        precondition(!keys.isEmpty)
        self.keys = keys
    }

    /// The key for new values.
    var current: EncryptionKey { keys[0] }

    subscript(id: String) -> EncryptionKey? { keys.first { $0.id == id } }
}

/// A value that cannot be decrypted.
struct SealFault: Error, Hashable, CustomStringConvertible {
    enum Cause: Hashable {
        /// The key is not among the keys of the queue, which have the ids `present`.
        case keyMissing(id: String, present: [String])
        /// The value or ``BoundContent`` was changed, the value belongs to another request, or was encrypted with
        /// another key of the same id.
        case damaged
        /// The value is not encrypted, and has no valid form.
        case malformed
        /// OpenSSL or memory failed.
        case system(SystemError)
    }

    let cause: Cause
    /// What cannot be decrypted, such as `header fields`.
    let part: String

    /// The fault of a value whose key is not among these.
    static func keyMissing(_ id: String, in keys: KeyRing?, part: String) -> SealFault {
        SealFault(cause: .keyMissing(id: id, present: keys.ids), part: part)
    }

    var isKeyMissing: Bool {
        if case .keyMissing = cause { true } else { false }
    }

    /// Whether the value itself cannot be read, with any key and at any time.
    var isDamage: Bool { cause == .damaged || cause == .malformed }

    var description: String {
        switch cause {
        case .keyMissing(let id, let present):
            (present.isEmpty
                ? "the encryption key `\(id)` is missing"
                : "the key file contains the wrong key: \(present.listed) instead of `\(id)`")
                + "; add the key `\(id)` to the key file and restart"
        case .damaged:
            "the encrypted \(part) do not match the request: the database row was changed, or another key was "
                + "used; cancel the request, or restore the database from a backup"
        case .malformed:
            "the stored \(part) cannot be read: the database row was changed; cancel the request, or restore the database "
                + "from a backup"
        case .system(let error): "the encrypted \(part) cannot be read: \(error)"
        }
    }
}

extension KeyRing? {
    /// The ids of the keys; empty if there are none.
    var ids: [String] { self?.keys.map(\.id) ?? [] }
}

extension [String] {
    /// The ids of keys in words, for messages.
    var listed: String { map { "`\($0)`" }.joined(separator: ", ") }
}

extension KeyRing {
    /// Encrypts a value with the current key.
    func seal(_ bytes: UnsafeRawBufferPointer, context: String) throws(SystemError) -> Data {
        try current.seal(bytes, context: context)
    }

    /// Decrypts a value.
    ///
    /// - Parameter part: What the value is, for the error.
    func open(_ sealed: Data, context: String, part: String) throws(SealFault) -> Data {
        guard let id = EncryptionKey.id(of: sealed) else { throw SealFault(cause: .damaged, part: part) }
        guard let key = self[id] else { throw SealFault.keyMissing(id, in: self, part: part) }
        var plain = Data(count: sealed.count - EncryptionKey.overhead)
        let result = sealed.withUnsafeBytes { sealed in
            plain.withUnsafeMutableBytes { plain in
                Result { () throws(SystemError) in try key.open(sealed, context: context, into: plain) }
            }
        }
        if case .failure(let error) = result {
            throw SealFault(cause: error == .wrongTag ? .damaged : .system(error), part: part)
        }
        return plain
    }
}

/// The random key of one spool file. The row of the request contains it, encrypted with a key of the queue. A rotation
/// of the queue's keys therefore changes only the row, not the file.
final class FileKey: Sendable {
    let memory: SecretMemory
    /// The key, encrypted for the row.
    let sealed: Data

    private init(_ memory: SecretMemory, sealed: Data) {
        self.memory = memory
        self.sealed = sealed
    }

    private static func context(of name: String) -> String { "file:\(name)" }

    /// Creates a random key for the file with a name.
    static func random(for name: String, _ keys: KeyRing) throws(SystemError) -> FileKey {
        let memory = try SecretMemory(AES256.keyBytes) { bytes throws(SystemError) in
            try AES256.randomize(bytes)
        }
        return FileKey(memory, sealed: try keys.seal(memory.bytes, context: context(of: name)))
    }

    /// Decrypts the key of the file with a name.
    static func opening(_ sealed: Data, of name: String, _ keys: KeyRing?) throws(SealFault) -> FileKey {
        let part = "bytes of the file's key"
        guard let id = EncryptionKey.id(of: sealed), sealed.count == EncryptionKey.overhead + AES256.keyBytes
        else {
            throw SealFault(cause: .damaged, part: part)
        }
        guard let key = keys?[id] else { throw SealFault.keyMissing(id, in: keys, part: part) }
        do throws(SystemError) {
            let memory = try SecretMemory(AES256.keyBytes) { bytes throws(SystemError) in
                let result = sealed.withUnsafeBytes { sealed in
                    Result { () throws(SystemError) in
                        try key.open(sealed, context: context(of: name), into: bytes)
                    }
                }
                try result.get()
            }
            return FileKey(memory, sealed: sealed)
        } catch {
            throw SealFault(cause: error == .wrongTag ? .damaged : .system(error), part: part)
        }
    }

    /// Returns the key, encrypted with the current key of the queue.
    func sealedAgain(for name: String, _ keys: KeyRing) throws(SystemError) -> Data {
        try keys.seal(memory.bytes, context: Self.context(of: name))
    }
}
