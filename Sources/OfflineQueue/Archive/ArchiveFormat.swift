public import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The lines of an export: a header, for each request one line and the lines of its body, and a last line that
/// tells how many requests there are and the SHA-256 of everything before it. Each line is a value of JSON.
package enum ArchiveFormat {
    static let version = 1
    static let type = "netwatch-queue-export"
    /// How many bytes of a body a line holds; the last of a body holds the rest.
    package static let chunkBytes = 48 * 1024
    /// The longest line: a URL and headers, each of 64 KiB and each byte of them escaped as `\\u0001`, and all else.
    package static let maximumLineBytes = 1 << 20

    static let requestStart = Array("{\"request\":".utf8)
    static let voidStart = Array("{\"void\":".utf8)
    static let endStart = Array("{\"end\":".utf8)

    /// The first line.
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

    /// The request whose body was not whole yet is not there after all: it ended while it was being exported.
    static let void = line(Data(#"{"void":true}"#.utf8))

    /// The last line.
    static func end(requests: Int, digest: SHA256Digest) -> Data {
        line(Data(#"{"end":{"requests":\#(requests),"sha256":"\#(digest)"}}"#.utf8))
    }

    private static func line(_ value: Data) -> Data { value + Data([UInt8(ascii: "\n")]) }
}

/// Counts and hashes the pages of an export and makes its last line.
public struct ExportSeal: ~Copyable {
    private var hash: SHA256
    /// How many requests the pages have.
    private(set) var requests = 0

    /// Begins with no page.
    ///
    /// - Throws: `SystemError` without memory, and when OpenSSL is set up so that it has no SHA-256.
    public init() throws {
        hash = try SHA256.make()
    }

    /// Goes on with the next page.
    public mutating func add(_ page: Data) {
        page.withUnsafeBytes { hash.update($0) }
        var rest = page
        while !rest.isEmpty {
            if rest.starts(with: ArchiveFormat.requestStart) { requests += 1 }
            if rest.starts(with: ArchiveFormat.voidStart) { requests -= 1 }
            rest = rest.dropFirst(rest.lineLength.map { $0 + 1 } ?? rest.count)
        }
    }

    /// The line that makes an export of the pages. There is nothing more to do afterwards.
    public mutating func finish() -> Data {
        ArchiveFormat.end(requests: requests, digest: hash.finish())
    }
}

extension Data {
    /// How many bytes come before the first end of a line; `nil` when there is none.
    var lineLength: Int? {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let end = memchr(start, 10, bytes.count) else { return nil }
            return UnsafeRawPointer(end) - start
        }
    }
}
