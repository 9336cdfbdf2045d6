internal import CNetwatchCrypto
internal import Foundation
internal import Glibc
package import NetwatchEventLoop
internal import NetwatchTransport

/// A SHA-256 digest (FIPS 180-4).
package struct SHA256Digest: Hashable, Sendable {
    /// The size of a digest in bytes: 32.
    package static let byteCount = 32

    package let bytes: [UInt8]

    fileprivate init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Computes the digest of `bytes`.
    ///
    /// - Throws: ``SystemError`` if SHA-256 is not available; see ``SHA256/make()``.
    package init(of bytes: [UInt8]) throws(SystemError) {
        var hash = try SHA256.make()
        bytes.withUnsafeBytes { hash.update($0) }
        self = hash.finish()
    }

    /// Parses 64 hexadecimal digits in lower case. Returns `nil` for any other text.
    package init?(_ text: String) {
        let digits = text.utf8.map(Self.value)
        guard digits.count == 2 * Self.byteCount, !digits.contains(nil) else { return nil }
        let values = digits.compactMap { $0 }
        bytes = stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    private static func value(ofDigit digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension SHA256Digest: CustomStringConvertible {
    /// 64 hexadecimal digits in lower case, as `sha256sum(1)` prints them.
    package var description: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Computes the digest of bytes that arrive in pieces, with OpenSSL's `EVP_DigestUpdate(3)`.
struct SHA256: ~Copyable {
    /// The `EVP_MD_CTX`. It is not bound to a thread, so this value may be used on different threads, one at a time.
    private let context: OpaquePointer

    private init(_ context: OpaquePointer) {
        self.context = context
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    /// Returns a computation to which no bytes were added yet.
    ///
    /// - Throws: ``SystemError`` `ENOMEM` if there is not enough memory, or `ENOSYS` if OpenSSL is configured without
    ///   SHA-256.
    static func make() throws(SystemError) -> SHA256 {
        OpenSSL.prepare()
        guard let context = EVP_MD_CTX_new() else { throw SystemError(call: "EVP_MD_CTX_new", errno: ENOMEM) }
        let hash = SHA256(context)
        guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            throw SystemError(call: "EVP_DigestInit_ex", errno: ENOSYS)
        }
        return hash
    }

    /// Adds bytes to the digest.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(context, bytes.baseAddress, UInt(bytes.count))
    }

    /// Returns the digest of all bytes. The value must not be used afterwards.
    mutating func finish() -> SHA256Digest {
        let bytes = [UInt8](unsafeUninitializedCapacity: SHA256Digest.byteCount) { buffer, count in
            EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
            count = SHA256Digest.byteCount
        }
        return SHA256Digest(bytes: bytes)
    }
}

extension SHA256 {
    /// Returns the digest of `bytes`.
    ///
    /// - Throws: ``QueueError/Code/spoolFailed`` when SHA-256 is not available.
    static func digest(of bytes: Data) throws(QueueError) -> SHA256Digest {
        do throws(SystemError) {
            var hash = try make()
            bytes.withUnsafeBytes { hash.update($0) }
            return hash.finish()
        } catch {
            throw QueueError(.spoolFailed, "SHA-256 is not available: \(error)")
        }
    }
}
