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
