internal import CNetwatchCrypto
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

/// AES with keys of 256 bits, by OpenSSL's `EVP_CIPHER` functions.
///
/// Each call has its own context, which OpenSSL overwrites when it is freed. A context holds the key in ordinary
/// memory, so none is kept.
enum AES256 {
    static let keyBytes = 32
    static let blockBytes = 16
    /// The size of a nonce of GCM: 96 bits.
    static let nonceBytes = 12
    /// The size of an authentication tag of GCM: 128 bits.
    static let tagBytes = 16

    /// Encrypts whole blocks, each independently of the others. Only for the derivation of keys.
    static func encryptBlocks(
        _ input: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        let cipher = try CipherContext.make(EVP_aes_256_ecb(), key: key, nonce: nil, isEncryption: true)
        try cipher.disablePadding()
        try cipher.update(input, into: output.baseAddress)
    }

    /// Encrypts and authenticates bytes (GCM, NIST SP 800-38D).
    ///
    /// - Parameters:
    ///   - nonce: 12 bytes that are never used twice with this key.
    ///   - context: Associated data, which is authenticated and not part of the output.
    ///   - output: The memory for the ciphertext, which is as long as the input, and the tag behind it.
    static func seal(
        _ input: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer,
        nonce: UnsafeRawBufferPointer,
        context: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        let cipher = try CipherContext.make(EVP_aes_256_gcm(), key: key, nonce: nonce, isEncryption: true)
        try cipher.update(context, into: nil)
        try cipher.update(input, into: output.baseAddress)
        try cipher.finish(errno: ENOSYS)
        try cipher.getTag(output.baseAddress! + input.count)
    }

    /// Decrypts the output of ``seal(_:key:nonce:context:into:)``.
    ///
    /// - Parameter output: The memory for the bytes: 16 bytes fewer than the input has.
    /// - Throws: ``SystemError`` `EBADMSG` if the tag is wrong: the ciphertext was changed or belongs to another key,
    ///   nonce or context.
    static func open(
        _ input: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer,
        nonce: UnsafeRawBufferPointer,
        context: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        guard input.count >= tagBytes else { throw .wrongTag }
        let text = UnsafeRawBufferPointer(rebasing: input.dropLast(tagBytes))
        let cipher = try CipherContext.make(EVP_aes_256_gcm(), key: key, nonce: nonce, isEncryption: false)
        try cipher.setTag(UnsafeRawBufferPointer(rebasing: input.suffix(tagBytes)))
        try cipher.update(context, into: nil)
        try cipher.update(text, into: output.baseAddress)
        try cipher.finish(errno: EBADMSG)
    }

    /// Fills memory with random bytes.
    static func randomize(_ bytes: UnsafeMutableRawBufferPointer) throws(SystemError) {
        let start = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        guard RAND_bytes(start, CInt(bytes.count)) == 1 else {
            throw SystemError(call: "RAND_bytes", errno: EIO)
        }
    }
}

extension SystemError {
    /// The error for a ciphertext that its authentication tag does not match.
    static let wrongTag = SystemError(call: "EVP_CipherFinal_ex", errno: EBADMSG)
}

/// An `EVP_CIPHER_CTX`.
private struct CipherContext: ~Copyable {
    private let context: OpaquePointer

    private init(_ context: OpaquePointer) {
        self.context = context
    }

    static func make(
        _ cipher: OpaquePointer?,
        key: UnsafeRawBufferPointer,
        nonce: UnsafeRawBufferPointer?,
        isEncryption: Bool
    ) throws(SystemError) -> CipherContext {
        OpenSSL.prepare()
        guard let context = EVP_CIPHER_CTX_new() else {
            throw SystemError(call: "EVP_CIPHER_CTX_new", errno: ENOMEM)
        }
        let made = CipherContext(context)
        try require("EVP_CipherInit_ex") {
            EVP_CipherInit_ex(context, cipher, nil, key.octets, nonce?.octets, isEncryption ? 1 : 0)
        }
        return made
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
    }

    func disablePadding() throws(SystemError) {
        try Self.require("EVP_CIPHER_CTX_set_padding") { EVP_CIPHER_CTX_set_padding(context, 0) }
    }

    /// - Parameter output: `nil` for associated data.
    func update(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?) throws(SystemError) {
        guard !input.isEmpty else { return }
        var count: CInt = 0
        let place = output?.assumingMemoryBound(to: UInt8.self)
        try Self.require("EVP_CipherUpdate") {
            EVP_CipherUpdate(context, place, &count, input.octets, CInt(input.count))
        }
    }

    func finish(errno: CInt) throws(SystemError) {
        // GCM writes nothing here, but the function needs a pointer.
        var (block, count) = (UInt8(0), CInt(0))
        try Self.require("EVP_CipherFinal_ex", errno: errno) { EVP_CipherFinal_ex(context, &block, &count) }
    }

    func getTag(_ tag: UnsafeMutableRawPointer) throws(SystemError) {
        try Self.require("EVP_CIPHER_CTX_ctrl") {
            EVP_CIPHER_CTX_ctrl(context, netwatch_aead_get_tag, CInt(AES256.tagBytes), tag)
        }
    }

    func setTag(_ tag: UnsafeRawBufferPointer) throws(SystemError) {
        // OpenSSL copies the tag. The parameter is not `const`, because other types of control calls write to it.
        let bytes = UnsafeMutableRawPointer(mutating: tag.baseAddress)
        try Self.require("EVP_CIPHER_CTX_ctrl") {
            EVP_CIPHER_CTX_ctrl(context, netwatch_aead_set_tag, CInt(AES256.tagBytes), bytes)
        }
    }

    private static func require(
        _ call: String,
        errno: CInt = ENOSYS,
        _ body: () -> CInt
    ) throws(SystemError) {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        guard body() == 1 else { throw SystemError(call: call, errno: errno) }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var octets: UnsafePointer<UInt8>? { assumingMemoryBound(to: UInt8.self).baseAddress }
}
