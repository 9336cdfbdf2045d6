internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The format of an export. Each line is a JSON value:
///
/// 1. a header line;
/// 2. for each request a line, followed by lines with its body in base64;
/// 3. a last line with the number of requests and the SHA-256 of everything before it.
package enum ArchiveFormat {
    static let version = 1
    static let type = "netwatch-queue-export"
    /// The number of body bytes in a line: 48 KiB. The last line of a body contains the rest.
    package static let chunkBytes = 48 * 1024
    /// The maximum length of a line in bytes: 1 MiB. A URL and headers of 64 KiB each fit into it together with all
    /// other members, even if every byte is escaped with six characters such as `\u0001`.
    package static let maximumLineBytes = 1 << 20

    static let requestStart = Array("{\"request\":".utf8)
    static let voidStart = Array("{\"void\":".utf8)
    static let endStart = Array("{\"end\":".utf8)

    /// Returns the first line of an export.
    static func header(created: Timestamp, includingDead: Bool) -> Data {
        line(
            Data(
                #"{"v":\#(version),"type":"\#(type)","created":\#(created.milliseconds),"dead":\#(includingDead)}"#
                    .utf8
            )
        )
    }

    static func request(_ request: ArchivedRequest) throws -> Data {
        line(Data(requestStart) + (try QueueJSON.encoder.encode(request)) + Data("}".utf8))
    }

    static func chunk(_ bytes: Data) -> Data {
        line(Data("\"".utf8) + bytes.base64EncodedData() + Data("\"".utf8))
    }

    /// The line that is written instead of the rest of a body. It removes the current request from the export, because
    /// the request finished or its body became unreadable during the export.
    static let void = line(Data(#"{"void":true}"#.utf8))

    /// Returns the last line of an export.
    static func end(requests: Int, digest: SHA256Digest) -> Data {
        line(Data(#"{"end":{"requests":\#(requests),"sha256":"\#(digest)"}}"#.utf8))
    }

    private static func line(_ value: Data) -> Data { value + Data([UInt8(ascii: "\n")]) }
}
