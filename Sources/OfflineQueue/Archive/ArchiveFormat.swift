internal import ClientCore
public import Foundation
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

/// What differs in an export that a development version has written: `after` has the dependencies, and the members of the
/// stored record are in the request itself, except two.
///
/// Existing queues of development versions move by export and import. This file can be removed after the first release.
enum DevelopmentExport {
    private enum Names: String, CodingKey {
        case after
        case maximumAttempts
        /// Such as `response=600000,total=900000,http-version=1.1,retry=404+500-599,record=none`.
        case timeouts
    }

    static func dependencies(from decoder: any Decoder) throws -> [String]? {
        try decoder.container(keyedBy: Names.self).decodeIfPresent([String].self, forKey: .after)
    }

    /// - Parameter decoder: Decodes the request.
    static func options(from decoder: any Decoder) throws -> EnqueueOptions {
        var options = EnqueueOptions()
        try options.decodeStored(decoder.container(keyedBy: MemberName.self))
        let names = try decoder.container(keyedBy: Names.self)
        options.maximumAttempts = try names.decodeIfPresent(Int.self, forKey: .maximumAttempts)
        let settings = try names.decodeIfPresent(String.self, forKey: .timeouts) ?? ""
        for setting in settings.split(separator: ",") { try read(setting, into: &options) }
        return options
    }

    private static func read(_ setting: Substring, into options: inout EnqueueOptions) throws(QueueError) {
        let pair = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let value = pair.count == 2 ? String(pair[1]) : ""
        switch (pair[0], Int64(value), HTTPVersion(rawValue: value)) {
        case ("connect", let number?, _): options.timeouts.connect = .milliseconds(number)
        case ("response", let number?, _): options.timeouts.response = .milliseconds(number)
        case ("total", let number?, _): options.timeouts.total = .milliseconds(number)
        case ("http-version", _, let version?): options.httpVersion = version
        case ("retry", _, _):
            options.statusRules.retry = try StatusRanges.parse(value.replacing("+", with: ","))
        case ("dead", _, _):
            options.statusRules.dead = try StatusRanges.parse(value.replacing("+", with: ","))
        case ("record", _, _) where value == "none": options.isRecorded = false
        default:
            throw QueueError(
                .invalidOption,
                "the setting \(quoted(String(setting))) of the attempts is unknown; accepted: `connect=`, `response=` and "
                    + "`total=` with milliseconds, `http-version=`, `retry=` and `dead=` with statuses, and `record=none`"
            )
        }
    }
}
