public import Foundation
internal import Glibc

/// Counts and hashes the pages of an export, and creates its last line.
public struct ExportTrailer: ~Copyable {
    private var hash: SHA256
    /// The number of requests in the pages.
    private(set) var requests = 0

    /// Creates a seal without pages.
    ///
    /// - Throws: `SystemError` when memory is short, and when OpenSSL is configured without SHA-256.
    public init() throws {
        hash = try SHA256.make()
    }

    /// Adds the next page.
    public mutating func add(_ page: Data) {
        page.withUnsafeBytes { hash.update($0) }
        var rest = page
        while !rest.isEmpty {
            if rest.starts(with: ArchiveFormat.requestStart) { requests += 1 }
            if rest.starts(with: ArchiveFormat.voidStart) { requests -= 1 }
            rest = rest.dropFirst(rest.lineLength.map { $0 + 1 } ?? rest.count)
        }
    }

    /// Returns the last line, which completes the export. The seal must not be used afterwards.
    public mutating func finish() -> Data {
        ArchiveFormat.end(requests: requests, digest: hash.finish())
    }
}

extension Data {
    /// The number of bytes before the first newline; `nil` when there is none.
    var lineLength: Int? {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let end = memchr(start, 10, bytes.count) else { return nil }
            return UnsafeRawPointer(end) - start
        }
    }
}
