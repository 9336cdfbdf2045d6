internal import Foundation
internal import NetwatchEventLoop

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
