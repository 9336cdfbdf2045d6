internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The data with which a download can be continued later, in this or another process. It is stored as readable JSON.
///
/// The record does not contain the header fields of the request, or the user and password of its URL. It contains the
/// URL's query, which identifies the resource. A secret in the query is therefore stored, too.
struct ResumeRecord: Hashable, Sendable {
    /// The version of the JSON format. Records of other versions are refused.
    static let currentVersion = 1
    /// The maximum length of an encoded record in bytes. Only a very long URL exceeds it.
    static let maximumBytes = 64 * 1024

    /// The URL of the original request. The method is always `GET`.
    let url: URL
    /// Identify the version of the resource to which the bytes belong.
    let validator: ResumeValidator
    /// The total length in bytes, if the server reported it.
    var total: Int64?
    /// The number of bytes in the partial file when the record was written.
    var received: Int64 = 0
    /// The number of bytes that are known to be on disk.
    var synced: Int64 = 0
    /// The boot during which the record was written; see `BootID`. Empty if that is not known.
    var bootID: String
    /// The absolute path of the partial file.
    var partialFile: String
    /// The time at which the download started, in whole seconds.
    let created: Date
    /// The time at which the record was written, in whole seconds.
    var updated: Date

    /// Creates the record of a new download. Returns `nil` if the download cannot be continued.
    ///
    /// A download can be continued if its method is `GET`, and it meets these conditions:
    ///
    /// - The request has no `Range` of the program.
    /// - The status is 200 and the server accepts ranges, or the status is 206 and the part starts at byte 0.
    /// - The body is not encoded, for example with gzip.
    /// - The response has a strong validator; see ``ResumeValidator``.
    ///
    /// - Parameters:
    ///   - request: The original request.
    ///   - head: The head of the response.
    ///   - partialFile: The path of the file with the body.
    init?(of request: URLRequest, head: TransferHead, partialFile: String) {
        guard (request.httpMethod ?? "GET") == "GET", !request.hasRange,
            let url = request.url?.withoutUserInfo,
            !head.isEncoded, let validator = ResumeValidator(head), let total = Self.total(in: head)
        else { return nil }
        self.url = url
        self.validator = validator
        self.total = total.count
        self.bootID = BootID.current ?? ""
        self.partialFile = partialFile
        created = Self.now
        updated = created
    }

    init(
        url: URL,
        validator: ResumeValidator,
        total: Int64?,
        received: Int64,
        synced: Int64,
        bootID: String,
        partialFile: String,
        created: Date,
        updated: Date
    ) {
        self.url = url
        self.validator = validator
        self.total = total
        self.received = received
        self.synced = synced
        self.bootID = bootID
        self.partialFile = partialFile
        self.created = created
        self.updated = updated
    }

    /// Returns whether the record is of a download of this URL. The user and password in the URL are ignored.
    func isOf(_ url: URL) -> Bool {
        url.withoutUserInfo == self.url
    }

    /// Returns the record with the current state of the partial file, the current boot and the current time.
    func updated(received: Int64, synced: Int64) -> ResumeRecord {
        var record = self
        record.received = received
        record.synced = synced
        record.bootID = BootID.current ?? ""
        record.updated = Self.now
        return record
    }

    /// Returns the number of valid bytes in a partial file of this length; `nil` if the file is shorter than the
    /// record says, or longer than the total.
    ///
    /// If the record is from the current boot, all bytes are valid, even if the process was killed: they are on disk or
    /// in the kernel's memory. After a reboot, only synced bytes are valid.
    func usable(of length: Int64) -> Int64? {
        if let current = BootID.current, bootID == current {
            return length >= received && length <= total ?? .max ? length : nil
        }
        return length >= synced ? synced : nil
    }

    /// Returns the total length: `(nil, ())` if it is unknown, and `nil` if the download cannot be continued.
    private static func total(in head: TransferHead) -> (count: Int64?, Void)? {
        switch head.status {
        case 200:
            guard takesRanges(head) else { return nil }
            return (
                head.singleField("content-length").flatMap { Int64($0) }.flatMap { $0 < 0 ? nil : $0 }, ()
            )
        case 206:
            guard
                case .part(let range, let total)? = head.singleField("content-range").flatMap(
                    ContentRange.init
                ),
                range.lowerBound == 0
            else { return nil }
            return (total, ())
        default:
            return nil
        }
    }

    private static func takesRanges(_ head: TransferHead) -> Bool {
        head.fields.values(of: "accept-ranges").joined(separator: ",").lowercased().split(separator: ",")
            .contains { $0.trimmingCharacters(in: .whitespaces) == "bytes" }
    }

    private static var now: Date { Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)) }
}

extension URLRequest {
    /// Whether the request asks for a part of the resource.
    var hasRange: Bool { value(forHTTPHeaderField: "Range") != nil }
}
