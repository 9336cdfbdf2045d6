public import Foundation
internal import Glibc

/// The last line of an export: it contains the number of requests and the SHA-256 of all pages.
public struct ExportTrailer: ~Copyable {
    private var hash: SHA256
    /// The number of requests in the pages that were added.
    private(set) var requests = 0

    /// Creates a trailer for an export whose pages are added with ``add(_:)``.
    ///
    /// - Throws: `SystemError` if memory is short or OpenSSL is configured without SHA-256.
    public init() throws {
        hash = try SHA256.make()
    }

    /// Adds the next page (``ExportPage/data``) to the count and the hash.
    public mutating func add(_ page: Data) {
        page.withUnsafeBytes { hash.update($0) }
        var rest = page
        while !rest.isEmpty {
            if rest.starts(with: ArchiveFormat.requestStart) { requests += 1 }
            if rest.starts(with: ArchiveFormat.voidStart) { requests -= 1 }
            rest = rest.dropFirst(rest.lineLength.map { $0 + 1 } ?? rest.count)
        }
    }

    /// Returns the last line, which completes the export. The trailer must not be used afterwards.
    public mutating func finish() -> Data {
        ArchiveFormat.end(requests: requests, digest: hash.finish())
    }
}

extension Data {
    /// The number of bytes before the first newline; `nil` if there is no newline.
    var lineLength: Int? {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let end = memchr(start, 10, bytes.count) else { return nil }
            return UnsafeRawPointer(end) - start
        }
    }
}
