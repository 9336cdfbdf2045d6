internal import CNetwatchCrypto
internal import Foundation
internal import NetwatchTransport

/// Calls OpenSSL, and takes out of this thread's queue of errors what it has put there: on the engine's thread the
/// next call of libcurl's would take it for its own.
func callingOpenSSL<Result>(_ body: () -> Result) -> Result {
    OpenSSL.prepare()
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    return body()
}

/// Memory that OpenSSL writes to or reads from (`BIO_s_mem(3)`).
struct OpenSSLMemory: ~Copyable {
    let bio: OpaquePointer

    private init(_ bio: OpaquePointer) {
        self.bio = bio
    }

    deinit {
        BIO_free(bio)
    }

    /// - Returns: `nil` when there is no memory.
    private static func empty() -> OpenSSLMemory? {
        BIO_new(BIO_s_mem()).map { OpenSSLMemory($0) }
    }

    /// What `write` wrote, or `nil` unless it returned 1 or, as some functions do, a count.
    static func written(by write: (OpaquePointer) -> CInt) -> [UInt8]? {
        guard let memory = empty(), write(memory.bio) > 0 else { return nil }
        return memory.bytes()
    }

    /// Gives `read` the bytes to read.
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
        let room = CInt(chunk.count)
        while case let count = BIO_read(bio, &chunk, room), count > 0 { all += chunk[..<Int(count)] }
        return all
    }
}

/// DER by way of OpenSSL's `d2i` and `i2d` functions.
enum OpenSSLCoding {
    /// What `decode` makes of all of the bytes; `nil` when it makes nothing of them or leaves some.
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

    /// What `encode` writes; `nil` when it fails.
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

    /// A distinguished name in one line, its last part first: `CN=example.com,O=Example` (RFC 4514).
    static func text(of name: OpaquePointer?) -> String {
        guard let name else { return "" }
        // XN_FLAG_RFC2253 without ASN1_STRFLGS_ESC_MSB: names are UTF-8 here.
        let flags: UInt = 0x0111_0313
        let bytes = callingOpenSSL {
            OpenSSLMemory.written { X509_NAME_print_ex($0, name, 0, flags) }
        }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    /// `nil` for a time that is none.
    static func date(_ time: OpaquePointer?) -> Date? {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var (days, seconds): (CInt, CInt) = (0, 0)
        guard callingOpenSSL({ ASN1_TIME_diff(&days, &seconds, epoch, time) }) == 1 else { return nil }
        return Date(timeIntervalSince1970: TimeInterval(days) * 86_400 + TimeInterval(seconds))
    }

    /// `sha256//` and the digest in base64, as curl(1) takes it with `--pinnedpubkey`.
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
