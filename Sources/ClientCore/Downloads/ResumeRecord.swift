internal import Foundation
internal import FoundationNetworking
internal import Glibc
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

extension ResumeRecord: Codable {
    private enum CodingKeys: String, CodingKey {
        case version, method, url, entityTag, lastModified, totalBytes, receivedBytes, syncedBytes, bootID
        case partialFile, created, updated
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(Self.currentVersion, forKey: .version)
        try values.encode("GET", forKey: .method)
        try values.encode(url.absoluteString, forKey: .url)
        try values.encodeIfPresent(validator.entityTag, forKey: .entityTag)
        try values.encodeIfPresent(validator.lastModified, forKey: .lastModified)
        try values.encodeIfPresent(total, forKey: .totalBytes)
        try values.encode(received, forKey: .receivedBytes)
        try values.encode(synced, forKey: .syncedBytes)
        try values.encode(bootID, forKey: .bootID)
        try values.encode(partialFile, forKey: .partialFile)
        try values.encode(created.formatted(.iso8601), forKey: .created)
        try values.encode(updated.formatted(.iso8601), forKey: .updated)
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        try Self.check(values)
        self.init(
            url: try Self.url(values),
            validator: try Self.validator(values),
            total: try values.decodeIfPresent(Int64.self, forKey: .totalBytes),
            received: try values.decode(Int64.self, forKey: .receivedBytes),
            synced: try values.decode(Int64.self, forKey: .syncedBytes),
            bootID: try values.decode(String.self, forKey: .bootID),
            partialFile: try values.decode(String.self, forKey: .partialFile),
            created: try Self.date(values, .created),
            updated: try Self.date(values, .updated)
        )
        guard 0...received ~= synced, received <= total ?? .max else {
            throw Unreadable("syncedBytes, receivedBytes and totalBytes are not in ascending order")
        }
        guard partialFile.hasPrefix("/"), !partialFile.utf8.contains(0) else {
            throw Unreadable("partialFile `\(partialFile)` is not an absolute path")
        }
    }

    private static func check(_ values: KeyedDecodingContainer<CodingKeys>) throws {
        let version = try values.decode(Int.self, forKey: .version)
        guard version == currentVersion else {
            throw Unreadable("version \(version) is not supported; only \(currentVersion) is accepted")
        }
        let method = try values.decode(String.self, forKey: .method)
        guard method == "GET" else {
            throw Unreadable("method `\(method)` is not supported; only GET is accepted")
        }
        for key in [CodingKeys.receivedBytes, .syncedBytes] {
            guard try values.decode(Int64.self, forKey: key) >= 0 else {
                throw Unreadable("\(key.stringValue) is negative")
            }
        }
    }

    private static func url(_ values: KeyedDecodingContainer<CodingKeys>) throws -> URL {
        let text = try values.decode(String.self, forKey: .url)
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()),
            url.host?.isEmpty == false
        else {
            let shown = RedactedURL.text(ofUnchecked: text)
            throw Unreadable("url `\(shown)` is not an http or https URL with a host")
        }
        return url
    }

    private static func date(_ values: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) throws -> Date {
        let text = try values.decode(String.self, forKey: key)
        if let date = try? Date(text, strategy: .iso8601) { return date }
        throw Unreadable("\(key.stringValue) `\(text)` is not an ISO 8601 date")
    }

    private static func validator(_ values: KeyedDecodingContainer<CodingKeys>) throws -> ResumeValidator {
        let tag = try values.decodeIfPresent(String.self, forKey: .entityTag)
        let date = try values.decodeIfPresent(String.self, forKey: .lastModified)
        if let tag, ResumeValidator(entityTag: tag, lastModified: nil) == nil {
            throw Unreadable("entityTag `\(tag)` is not a strong entity tag")
        }
        if let validator = ResumeValidator(entityTag: tag, lastModified: date) { return validator }
        guard let date else { throw Unreadable("`entityTag` or `lastModified` is missing") }
        throw Unreadable("lastModified `\(date)` is not an HTTP date")
    }
}

extension ResumeRecord {
    private struct Unreadable: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// Decodes a record from JSON that ``data`` has returned.
    ///
    /// - Throws: ``AFError/DownloadResumeFailureReason/resumeDataInvalid(_:)`` with a description of the error.
    init(data: Data) throws {
        guard data.count <= Self.maximumBytes else {
            throw Self.invalid("\(data.count) bytes; at most \(Self.maximumBytes) are accepted")
        }
        do {
            self = try JSONDecoder().decode(ResumeRecord.self, from: data)
        } catch let error as Unreadable {
            throw Self.invalid(error.text)
        } catch let error as DecodingError {
            throw Self.invalid(error.message)
        }
    }

    /// The record as JSON; `nil` if it is too long to be decoded again.
    var data: Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self), data.count <= Self.maximumBytes else { return nil }
        return data
    }

    private static func invalid(_ text: String) -> AFError {
        AFError.downloadResumeFailed(reason: .resumeDataInvalid(text))
    }
}

extension DecodingError {
    fileprivate var message: String {
        switch self {
        case .keyNotFound(let key, _): "`\(key.stringValue)` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? "not a JSON object"
                : "`\(context.codingPath.map(\.stringValue).joined(separator: "."))` has the wrong type"
        @unknown default: "not a resume record"
        }
    }
}

/// The file that stores a resume record next to its partial file.
///
/// The file is replaced atomically: a reader finds the old record or the new one, even after a power failure. Only the
/// owner of the partial file's lock writes the record.
struct ResumeRecordFile: Sendable {
    let path: String

    /// The record file of a partial file: `<path>.resume`.
    init(of partialFile: String) {
        path = partialFile + ".resume"
    }

    /// Returns the record; `nil` if the file is missing, is invalid, or belongs to another user.
    func read() -> ResumeRecord? {
        guard
            let file = try? systemCall(
                "open \(path)",
                { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
            )
        else { return nil }
        let descriptor = FileDescriptor(owning: file)
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid()
        else { return nil }
        return Self.contents(of: descriptor).flatMap { try? ResumeRecord(data: $0) }
    }

    private static func contents(of descriptor: borrowing FileDescriptor) -> Data? {
        // The buffer has one byte more than the limit, so that a longer record is rejected instead of truncated.
        var bytes = [UInt8](repeating: 0, count: ResumeRecord.maximumBytes + 1)
        let file = descriptor.rawValue
        var count = 0
        while count < bytes.count {
            let capacity = bytes.count - count
            let got = try? bytes.withUnsafeMutableBytes { bytes in
                try systemCall("read") { Glibc.read(file, bytes.baseAddress! + count, capacity) }
            }
            guard let got else { return nil }
            if got == 0 { break }
            count += got
        }
        return Data(bytes[..<count])
    }

    /// Replaces the record durably. If the new record is too long to be read again, the file is removed instead.
    func write(_ record: ResumeRecord) throws(SystemError) {
        guard let data = record.data else { return try remove() }
        try PrivateFile.replace(path, with: Array(data), isDurable: true)
    }

    /// Removes the record durably: it does not reappear after a power failure.
    func remove() throws(SystemError) {
        try Directory.removeFile(path)
        try Directory.syncParent(of: path)
    }
}
