internal import CNetwatchCrypto
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

/// What SHA-256 (FIPS 180-4) makes of some bytes.
package struct SHA256Digest: Hashable, Sendable {
    /// How many bytes it has.
    package static let byteCount = 32

    package let bytes: [UInt8]

    fileprivate init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads what ``description`` gives; `nil` for anything else, capital letters included.
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
    /// 64 hexadecimal digits, as `sha256sum(1)` prints them.
    package var description: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Takes bytes piece by piece and makes their digest (`EVP_DigestInit(3)`).
struct SHA256: ~Copyable {
    /// An `EVP_MD_CTX`, which has no thread of its own: whoever owns the value may use it.
    private let context: OpaquePointer

    private init(_ context: OpaquePointer) {
        self.context = context
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    /// Begins with no bytes.
    ///
    /// - Throws: ``SystemError`` without memory, and when OpenSSL is set up so that it has no SHA-256.
    static func make() throws(SystemError) -> SHA256 {
        OpenSSL.prepare()
        guard let context = EVP_MD_CTX_new() else { throw SystemError(call: "EVP_MD_CTX_new", errno: ENOMEM) }
        let hash = SHA256(context)
        guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            throw SystemError(call: "EVP_DigestInit_ex", errno: ENOSYS)
        }
        return hash
    }

    /// Goes on with these bytes.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(context, bytes.baseAddress, UInt(bytes.count))
    }

    /// The digest of all bytes so far. There is nothing more to do afterwards but to let go.
    mutating func finish() -> SHA256Digest {
        let bytes = [UInt8](unsafeUninitializedCapacity: SHA256Digest.byteCount) { buffer, count in
            EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
            count = SHA256Digest.byteCount
        }
        return SHA256Digest(bytes: bytes)
    }
}

extension SHA256 {
    /// - Throws: ``QueueError/Code/spoolFailed`` when there is no SHA-256 to be had.
    static func digest(of bytes: Data) throws(QueueError) -> SHA256Digest {
        do throws(SystemError) {
            var hash = try make()
            bytes.withUnsafeBytes { hash.update($0) }
            return hash.finish()
        } catch {
            throw QueueError(.spoolFailed, "there is no SHA-256: \(error)")
        }
    }
}
