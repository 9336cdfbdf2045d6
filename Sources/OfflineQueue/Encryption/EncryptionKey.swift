internal import CNetwatchCrypto
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A key that encrypts stored values, with XAES-256-GCM ([c2sp.org](https://c2sp.org/XAES-256-GCM)).
///
/// XAES-256-GCM derives a key for AES-256-GCM from half of a random nonce of 192 bits. Plain AES-256-GCM permits at
/// most 2³² random nonces of 96 bits with a key (NIST SP 800-38D, 8.3), which a busy queue could use up. Here the bound
/// is 2⁸⁰ values.
final class EncryptionKey: Sendable {
    /// The size of a key: 32 bytes.
    static let byteCount = AES256.keyBytes
    static let nonceBytes = 24
    /// The number of bytes of a sealed value before its nonce: the format, and the id of the key.
    private static let headBytes = 1 + 4
    /// The number of bytes by which a sealed value is longer than the value.
    static let overhead = headBytes + nonceBytes + AES256.tagBytes
    private static let format: UInt8 = 1

    /// The name of the key for people: 8 hexadecimal digits. It is derived from the key, and does not reveal the key.
    let id: String
    private let idBytes: [UInt8]
    /// The key, and behind it the block that is combined with each nonce.
    private let memory: SecretMemory

    private var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory.bytes.prefix(Self.byteCount))
    }
    private var mask: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory.bytes.dropFirst(Self.byteCount))
    }

    /// - Parameter fill: Writes the 32 bytes of the key.
    init(_ fill: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Void) throws(SystemError) {
        memory = try SecretMemory(Self.byteCount + AES256.blockBytes) { memory throws(SystemError) in
            let key = UnsafeMutableRawBufferPointer(rebasing: memory.prefix(Self.byteCount))
            let mask = UnsafeMutableRawBufferPointer(rebasing: memory.dropFirst(Self.byteCount))
            try fill(key)
            try Self.makeMask(mask, UnsafeRawBufferPointer(key))
        }
        let label = Array("netwatch key id\0".utf8)
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: AES256.blockBytes, alignment: 1)
        defer { block.deallocate() }
        let labelBytes = UnsafeMutableRawBufferPointer.allocate(byteCount: label.count, alignment: 1)
        defer { labelBytes.deallocate() }
        labelBytes.copyBytes(from: label)
        let key = UnsafeRawBufferPointer(rebasing: memory.bytes.prefix(Self.byteCount))
        try AES256.encryptBlocks(UnsafeRawBufferPointer(labelBytes), key: key, into: block)
        idBytes = Array(block.prefix(4))
        id = Self.text(ofID: idBytes)
    }

    /// Computes the subkey K1 of CMAC (NIST SP 800-38B, 6.1): the encrypted zero block, doubled in GF(2¹²⁸).
    private static func makeMask(
        _ mask: UnsafeMutableRawBufferPointer,
        _ key: UnsafeRawBufferPointer
    ) throws(SystemError) {
        // The memory is zero before.
        try AES256.encryptBlocks(UnsafeRawBufferPointer(mask), key: key, into: mask)
        let reduction: UInt8 = mask[0] & 0x80 == 0 ? 0 : 0x87
        for index in mask.indices.dropLast() { mask[index] = mask[index] << 1 | mask[index + 1] >> 7 }
        mask[AES256.blockBytes - 1] = mask[AES256.blockBytes - 1] << 1 ^ reduction
    }

    private static func text(ofID bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the id of the key that sealed a value; `nil` if the bytes are not a sealed value.
    static func id(of sealed: Data) -> String? {
        guard sealed.count >= overhead, sealed.first == format else { return nil }
        return text(ofID: sealed.dropFirst().prefix(4))
    }
}

// MARK: - Sealing

extension EncryptionKey {
    /// Encrypts a value.
    ///
    /// - Parameter context: What the value belongs to. The value can be decrypted only with the same context.
    func seal(_ bytes: UnsafeRawBufferPointer, context: String) throws(SystemError) -> Data {
        let output = UnsafeMutableRawBufferPointer.allocate(
            byteCount: bytes.count + Self.overhead,
            alignment: 1
        )
        output[0] = Self.format
        output[1..<Self.headBytes].copyBytes(from: idBytes)
        do {
            try AES256.randomize(output.part(from: Self.headBytes, count: Self.nonceBytes))
            try seal(bytes, context, into: output)
        } catch {
            output.deallocate()
            throw error
        }
        return Data(
            bytesNoCopy: output.baseAddress!,
            count: output.count,
            deallocator: .custom { start, _ in
                start.deallocate()
            }
        )
    }

    /// Encrypts a value with the nonce that is already in the output.
    func seal(
        _ bytes: UnsafeRawBufferPointer,
        _ context: String,
        into output: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        let nonce = UnsafeRawBufferPointer(output.part(from: Self.headBytes, count: Self.nonceBytes))
        let subkey = try subkey(for: nonce)
        defer { withExtendedLifetime(subkey) {} }
        var context = Array(context.utf8)
        let end = Self.headBytes + Self.nonceBytes
        try context.withRawBytes { context throws(SystemError) in
            try AES256.seal(
                bytes,
                key: UnsafeRawBufferPointer(subkey.bytes),
                nonce: UnsafeRawBufferPointer(rebasing: nonce.suffix(AES256.nonceBytes)),
                context: context,
                into: output.part(from: end, count: output.count - end)
            )
        }
    }

    /// Decrypts a value of ``seal(_:context:)``.
    ///
    /// - Parameter output: The memory for the value: ``overhead`` bytes fewer than `sealed` has.
    /// - Throws: ``SystemError`` `EBADMSG` if the value was changed, or belongs to another key or context.
    func open(
        _ sealed: UnsafeRawBufferPointer,
        context: String,
        into output: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        guard sealed.count >= Self.overhead, sealed[0] == Self.format else { throw .wrongTag }
        let nonce = UnsafeRawBufferPointer(
            rebasing: sealed[Self.headBytes..<Self.headBytes + Self.nonceBytes]
        )
        let subkey = try subkey(for: nonce)
        defer { withExtendedLifetime(subkey) {} }
        var context = Array(context.utf8)
        try context.withRawBytes { context throws(SystemError) in
            try AES256.open(
                UnsafeRawBufferPointer(rebasing: sealed.dropFirst(Self.headBytes + Self.nonceBytes)),
                key: UnsafeRawBufferPointer(subkey.bytes),
                nonce: UnsafeRawBufferPointer(rebasing: nonce.suffix(AES256.nonceBytes)),
                context: context,
                into: output
            )
        }
    }

    /// Derives the key of a value from the first half of its nonce (NIST SP 800-108r1 with CMAC as the function).
    private func subkey(for nonce: UnsafeRawBufferPointer) throws(SystemError) -> ScratchKey {
        let subkey = ScratchKey(Self.byteCount)
        let bytes = subkey.bytes
        for block in 0..<2 {
            let place = block * AES256.blockBytes
            bytes[place] = 0
            bytes[place + 1] = UInt8(block + 1)
            bytes[place + 2] = UInt8(ascii: "X")
            bytes[place + 3] = 0
            for index in 0..<AES256.nonceBytes { bytes[place + 4 + index] = nonce[index] }
            for index in 0..<AES256.blockBytes { bytes[place + index] ^= mask[index] }
        }
        try AES256.encryptBlocks(UnsafeRawBufferPointer(bytes), key: key, into: bytes)
        return subkey
    }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func part(from start: Int, count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: self[start..<start + count])
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes. Unlike `withUnsafeBytes`, it passes on the type of the error.
    mutating func withRawBytes<Value>(
        _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let result = withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try body(bytes) }
        }
        return try result.get()
    }
}

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

/// The memory of a key: separate pages, which core dumps leave out (`MADV_DONTDUMP`), and which the kernel does not
/// swap if `RLIMIT_MEMLOCK` permits. The bytes are read-only after ``init(_:_:)`` and are overwritten at the end.
final class SecretMemory: Sendable {
    /// The maximum number of bytes: 4096, one page on most machines. The kernel rounds up on others.
    static let capacity = 4096

    // Nothing writes to the memory after the initializer, and only `deinit` releases it.
    private nonisolated(unsafe) let start: UnsafeMutableRawPointer
    private let count: Int

    /// Reserves memory and fills it.
    ///
    /// - Parameters:
    ///   - count: The number of bytes, at most ``capacity``.
    ///   - fill: Writes the bytes, which are zero before.
    /// - Throws: ``SystemError`` of mmap(2), and errors of `fill`.
    init(
        _ count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        precondition(count <= Self.capacity)
        let access = PROT_READ | PROT_WRITE
        let pages = mmap(nil, Self.capacity, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let pages, pages != MAP_FAILED else { throw SystemError(call: "mmap", errno: errno) }
        (start, self.count) = (pages, count)
        try systemCall("madvise") { madvise(start, Self.capacity, MADV_DONTDUMP) }
        // The limit is small in some containers. Without the lock, the key may be swapped.
        _ = mlock(start, Self.capacity)
        try fill(UnsafeMutableRawBufferPointer(start: start, count: count))
        try systemCall("mprotect") { mprotect(start, Self.capacity, PROT_READ) }
    }

    deinit {
        mprotect(start, Self.capacity, PROT_READ | PROT_WRITE)
        OPENSSL_cleanse(start, UInt(Self.capacity))
        munmap(start, Self.capacity)
    }

    /// The bytes. They are valid as long as the object is retained.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}

/// Memory for a key that is needed during one call. It is overwritten at the end.
struct ScratchKey: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer

    init(_ count: Int) {
        bytes = .allocate(byteCount: count, alignment: 16)
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, UInt(bytes.count))
        bytes.deallocate()
    }
}
