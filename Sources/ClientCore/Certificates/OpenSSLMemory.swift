internal import CNetwatchCrypto
internal import Foundation
internal import NetwatchTransport

/// Calls OpenSSL, then removes the errors of the call from this thread's error queue. If they stayed in the queue of
/// the engine's thread, libcurl's next call would report them as its own errors.
func callingOpenSSL<Result>(_ body: () -> Result) -> Result {
    OpenSSL.prepare()
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    return body()
}

/// A memory buffer that OpenSSL writes to or reads from (`BIO_s_mem(3)`).
struct OpenSSLMemory: ~Copyable {
    let bio: OpaquePointer

    private init(_ bio: OpaquePointer) {
        self.bio = bio
    }

    deinit {
        BIO_free(bio)
    }

    /// Returns an empty buffer for writing; `nil` if memory is exhausted.
    private static func empty() -> OpenSSLMemory? {
        BIO_new(BIO_s_mem()).map { OpenSSLMemory($0) }
    }

    /// Returns the bytes that `write` wrote to the given BIO; `nil` if `write` failed.
    ///
    /// - Parameter write: Calls an OpenSSL function and returns its result: a positive number for success.
    static func written(by write: (OpaquePointer) -> CInt) -> [UInt8]? {
        guard let memory = empty(), write(memory.bio) > 0 else { return nil }
        return memory.bytes()
    }

    /// Calls `read` with a BIO that contains the data, and returns its result; `nil` if the data exceeds 2 GiB or
    /// memory is exhausted.
    static func reading(_ data: Data, _ read: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        OpenSSL.prepare()
        return data.withUnsafeBytes { bytes in
            guard let count = CInt(exactly: bytes.count),
                let bio = BIO_new_mem_buf(bytes.baseAddress, count)
            else { return nil }
            let memory = OpenSSLMemory(bio)
            return read(memory.bio)
        }
    }

    private borrowing func bytes() -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        let capacity = CInt(chunk.count)
        while case let count = BIO_read(bio, &chunk, capacity), count > 0 { all += chunk[..<Int(count)] }
        return all
    }
}

/// Encodes and decodes DER with OpenSSL's `d2i` and `i2d` functions, and converts OpenSSL's values to Swift's.
enum OpenSSLCoding {
    /// Returns the value that `decode` parsed; `nil` if `decode` fails or does not consume all bytes.
    static func decoded(
        _ der: Data,
        by decode: (UnsafeMutablePointer<UnsafePointer<UInt8>?>, Int) -> OpaquePointer?,
        free: (OpaquePointer) -> Void
    ) -> OpaquePointer? {
        der.withUnsafeBytes { bytes in
            guard let start = bytes.assumingMemoryBound(to: UInt8.self).baseAddress else { return nil }
            var position: UnsafePointer<UInt8>? = start
            guard let value = callingOpenSSL({ decode(&position, bytes.count) }) else { return nil }
            if position == start + bytes.count { return value }
            free(value)
            return nil
        }
    }

    /// Returns the bytes that `encode` writes; `nil` if `encode` fails.
    static func encoded(by encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> Data? {
        let count = Int(callingOpenSSL { encode(nil) })
        guard count > 0 else { return nil }
        var data = Data(count: count)
        let written = data.withUnsafeMutableBytes { bytes in
            var position = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
            return Int(callingOpenSSL { encode(&position) })
        }
        return written == count ? data : nil
    }

    /// Returns a distinguished name in the format of RFC 4514, most specific part first: `CN=example.com,O=Example`.
    static func text(of name: OpaquePointer?) -> String {
        guard let name else { return "" }
        // XN_FLAG_RFC2253 without ASN1_STRFLGS_ESC_MSB, which would escape all bytes of UTF-8 that are not ASCII.
        let flags: UInt = 0x0111_0313
        let bytes = callingOpenSSL {
            OpenSSLMemory.written { X509_NAME_print_ex($0, name, 0, flags) }
        }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    /// Converts a time of OpenSSL; returns `nil` if it is missing or invalid.
    static func date(_ time: OpaquePointer?) -> Date? {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var (days, seconds): (CInt, CInt) = (0, 0)
        guard callingOpenSSL({ ASN1_TIME_diff(&days, &seconds, epoch, time) }) == 1 else { return nil }
        return Date(timeIntervalSince1970: TimeInterval(days) * 86_400 + TimeInterval(seconds))
    }

    /// Returns the SHA-256 digest in the format of curl's `--pinnedpubkey`: `sha256//` and base64.
    static func fingerprint(of data: Data) -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        let isMade = data.withUnsafeBytes { bytes in
            callingOpenSSL {
                EVP_Digest(bytes.baseAddress, UInt(bytes.count), &digest, nil, EVP_sha256(), nil)
            }
        }
        return isMade == 1 ? "sha256//" + Data(digest).base64EncodedString() : "unknown"
    }
}
