internal import Foundation
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
