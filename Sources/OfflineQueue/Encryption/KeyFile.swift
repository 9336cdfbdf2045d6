internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Reads the keys of a queue from a file: one key in each line, as 64 hexadecimal digits. Empty lines, and lines that
/// begin with `#`, are ignored.
///
/// The file is read directly into ``SecretMemory``, so no copy of a key remains in ordinary memory. Blocks.
struct KeyFile {
    let path: String

    /// The maximum size of the file in bytes.
    static let maximumBytes = SecretMemory.capacity - 1
    /// The maximum number of keys: 16. A rotation needs two.
    static let maximumKeys = 16

    /// - Throws: ``QueueError`` with `encryptionKeyUnusable`, whose message names the file and what is accepted.
    func keys() throws(QueueError) -> KeyRing {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw refusal("cannot be read: \(errnoDescription(errno))") }
        let file = FileDescriptor(owning: descriptor)
        let size = try checkedSize(of: file.rawValue)
        let text: SecretMemory
        do throws(SystemError) {
            text = try SecretMemory(size) { memory throws(SystemError) in
                let count = try systemCall("read \(path)") {
                    pread(descriptor, memory.baseAddress, memory.count, 0)
                }
                guard count == memory.count else { throw SystemError(call: "read \(path)", errno: EIO) }
            }
        } catch {
            throw refusal("cannot be read: \(errnoDescription(error.errno))")
        }
        return try ring(of: text)
    }

    /// Refuses files that other users may read or have written.
    ///
    /// A file of root may be readable by its group: systemd gives a service access to its credentials through an ACL,
    /// which appears as the permissions of the group.
    private func checkedSize(of descriptor: CInt) throws(QueueError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw refusal("cannot be read: \(errnoDescription(errno))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("is not a regular file") }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw refusal("belongs to the user \(status.st_uid); accepted: root and \(geteuid())")
        }
        let mode = status.st_mode & 0o777
        guard mode & (status.st_uid == 0 ? 0o037 : 0o077) == 0 else {
            throw refusal("has the mode 0\(String(mode, radix: 8)); use `chmod 600`")
        }
        guard status.st_size > 0 else { throw refusal("is empty; \(Self.hint)") }
        guard status.st_size <= Self.maximumBytes else {
            throw refusal("has \(status.st_size) bytes; at most \(Self.maximumBytes) are accepted")
        }
        return Int(status.st_size)
    }

    private static let hint = "create a key with `openssl rand -hex 32`"

    private func refusal(_ reason: String) -> QueueError {
        QueueError(.encryptionKeyUnusable, "the encryption key file `\(path)` \(reason)", path: path)
    }
}

// MARK: - Lines

extension KeyFile {
    private func ring(of text: SecretMemory) throws(QueueError) -> KeyRing {
        var keys: [EncryptionKey] = []
        let lines = text.bytes.withoutByteOrderMark.split(
            separator: UInt8(ascii: "\n"),
            omittingEmptySubsequences: false
        )
        for (index, line) in lines.enumerated() {
            let digits = UnsafeRawBufferPointer(rebasing: line)
            guard let first = digits.first(where: { !Self.isSpace($0) }), first != UInt8(ascii: "#") else {
                continue
            }
            keys.append(try key(digits, line: index + 1))
        }
        guard !keys.isEmpty else { throw refusal("contains no key; \(Self.hint)") }
        guard keys.count <= Self.maximumKeys else {
            throw refusal("contains \(keys.count) keys; at most \(Self.maximumKeys) are accepted")
        }
        for (index, key) in keys.enumerated() where keys[..<index].contains(where: { $0.id == key.id }) {
            throw refusal("contains the key `\(key.id)` twice")
        }
        return withExtendedLifetime(text) { KeyRing(keys) }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

    private func key(_ line: UnsafeRawBufferPointer, line number: Int) throws(QueueError) -> EncryptionKey {
        var (start, end) = (line.startIndex, line.endIndex)
        while Self.isSpace(line[start]) { start += 1 }
        while Self.isSpace(line[end - 1]) { end -= 1 }
        let digits = UnsafeRawBufferPointer(rebasing: line[start..<end])
        guard digits.count == 2 * EncryptionKey.byteCount, digits.allSatisfy({ Self.value(of: $0) != nil })
        else {
            throw refusal(
                "has an invalid key in line \(number): \(digits.count) characters; accepted: 64 hexadecimal digits; "
                    + Self.hint
            )
        }
        do throws(SystemError) {
            return try EncryptionKey { key in
                for index in key.indices {
                    key[index] =
                        Self.value(of: digits[2 * index])! << 4 | Self.value(of: digits[2 * index + 1])!
                }
            }
        } catch {
            throw refusal("cannot be used: \(error)")
        }
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
