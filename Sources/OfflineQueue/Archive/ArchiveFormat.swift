public import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The format of an export: a header line, one line for each request followed by the lines of its body, and a last line
/// with the number of requests and the SHA-256 of everything before it. Each line is a JSON value.
package enum ArchiveFormat {
    static let version = 1
    static let type = "netwatch-queue-export"
    /// The number of body bytes in a line; the last line of a body holds the rest.
    package static let chunkBytes = 48 * 1024
    /// The maximum length of a line: a URL and headers of 64 KiB each, every byte of them escaped as `\\u0001`, and all
    /// other members.
    package static let maximumLineBytes = 1 << 20

    static let requestStart = Array("{\"request\":".utf8)
    static let voidStart = Array("{\"void\":".utf8)
    static let endStart = Array("{\"end\":".utf8)

    /// Returns the first line.
    static func header(created: Timestamp, includingDead: Bool) -> Data {
        line(
            Data(
                #"{"v":\#(version),"type":"\#(type)","created":\#(created.milliseconds),"dead":\#(includingDead)}"#
                    .utf8
            )
        )
    }

    static func request(_ request: ArchivedRequest) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return line(Data(requestStart) + (try encoder.encode(request)) + Data("}".utf8))
    }

    static func chunk(_ bytes: Data) -> Data {
        line(Data("\"".utf8) + bytes.base64EncodedData() + Data("\"".utf8))
    }

    /// The line that replaces the rest of a body: the request before it is not part of the export, because it ended
    /// while it was being exported.
    static let void = line(Data(#"{"void":true}"#.utf8))

    /// Returns the last line.
    static func end(requests: Int, digest: SHA256Digest) -> Data {
        line(Data(#"{"end":{"requests":\#(requests),"sha256":"\#(digest)"}}"#.utf8))
    }

    private static func line(_ value: Data) -> Data { value + Data([UInt8(ascii: "\n")]) }
}

/// Counts and hashes the pages of an export, and creates its last line.
public struct ExportSeal: ~Copyable {
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
