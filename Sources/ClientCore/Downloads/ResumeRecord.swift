internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// What is needed to go on with a download later, in this process or another: JSON for people to read.
///
/// It holds no headers of the request and no user or password of its URL. The query of the URL is kept,
/// because without it the resource would be another one; whoever puts secrets there has them in the record.
struct ResumeRecord: Hashable, Sendable {
    /// The version of the format that is written, and the newest that is read.
    static let currentVersion = 1
    /// How long a record may be. Nearly all of it is the URL.
    static let maximumBytes = 64 * 1024

    /// What was asked for, with `GET`.
    let url: URL
    /// What tells the version that the bytes are of.
    let validator: ResumeValidator
    /// The whole length in bytes, when the server has said it.
    var total: Int64?
    /// How many bytes the partial file held when the record was written.
    var received: Int64 = 0
    /// How many of them are sure to be on the disk.
    var synced: Int64 = 0
    /// The boot of the machine during which the record was written: `/proc/sys/kernel/random/boot_id`.
    var bootID: String
    /// The absolute path of the partial file.
    var partialFile: String
    /// When the first byte came, in whole seconds.
    let created: Date
    /// When the record was written, in whole seconds.
    var updated: Date

    /// The record of a download that begins; `nil` when it could not be continued.
    ///
    /// - Parameters:
    ///   - request: What was asked for.
    ///   - head: The answer. It has to be a whole body (200) of a server that takes ranges, or a part of one
    ///     that begins at its beginning (206), not encoded, with a strong validator.
    ///   - partialFile: Where the body is put.
    init?(of request: URLRequest, head: TransferHead, partialFile: String) {
        guard (request.httpMethod ?? "GET") == "GET", let url = request.url.flatMap(Self.withoutUser),
            !head.isEncoded, let validator = ResumeValidator(head), let total = Self.total(in: head)
        else { return nil }
        self.url = url
        self.validator = validator
        self.total = total.count
        self.bootID = BootID.current
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

    /// Whether these bytes are an answer to a request for that URL.
    func isOf(_ url: URL) -> Bool {
        Self.withoutUser(url) == self.url
    }

    /// The record with what the partial file holds now.
    func updated(received: Int64, synced: Int64) -> ResumeRecord {
        var record = self
        record.received = received
        record.synced = synced
        record.bootID = BootID.current
        record.updated = Self.now
        return record
    }

    /// The bytes that can be relied on in a partial file of that length; `nil` when it is shorter than it
    /// ought to be, or longer than the whole.
    ///
    /// What was written in this boot is there, in memory if not on the disk, however the process ended.
    /// After another boot only what was synced is: behind it the file may hold anything.
    func usable(of length: Int64) -> Int64? {
        if bootID == BootID.current, !bootID.isEmpty {
            return length >= received && length <= total ?? .max ? length : nil
        }
        return length >= synced ? synced : nil
    }

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

    private static func withoutUser(_ url: URL) -> URL? {
        guard url.user != nil || url.password != nil else { return url.absoluteURL }
        var components = URLComponents(url: url, resolvingAgainstBaseURL: true)
        components?.user = nil
        components?.password = nil
        return components?.url
    }

    private static var now: Date { Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)) }
}
