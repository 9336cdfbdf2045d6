internal import GRDB
internal import GRDBSQLite
internal import Glibc
package import NetwatchEventLoop

/// A reader of a database's write-ahead log that does not use SQLite. SQLite would recover the log, and silently drop
/// the commits that it cannot use.
///
/// Closing any descriptor of a file releases all POSIX locks that the process holds on the file. SQLite locks the
/// database file and the log's index, but not the log itself, so reading the log releases no lock of SQLite. No
/// connection may write to the log while it is read. At most 64 frames are in memory.
package struct LogFile {
    private static let framesAtOnce = 64

    private let path: String

    package init(of database: String) {
        path = "\(database)-wal"
    }

    /// Reads the log; `nil` if it is missing or empty. Blocks.
    package func report() throws(SystemError) -> LogReport? {
        switch try content(recordsPages: false) {
        case .missing: nil
        case .unwritten: LogReport()
        case .broken: LogReport(hasBrokenHeader: true)
        case .scanned(let scan): scan.result
        }
    }

    /// Returns where the log contains the pages of its complete commits, and the page size in bytes; `nil` if there is
    /// no log with a valid header. Blocks.
    func pages() throws(SystemError) -> (pages: LogPages, pageBytes: Int)? {
        guard case .scanned(let scan) = try content(recordsPages: true) else { return nil }
        return (scan.pages, scan.frameBytes - LogScan.frameHeaderBytes)
    }

    private enum Content {
        case missing
        /// A crash during the very first write leaves an incomplete header, or one of zeros.
        case unwritten
        /// The header is invalid.
        case broken
        case scanned(LogScan)
    }

    private func content(recordsPages: Bool) throws(SystemError) -> Content {
        let file: FileDescriptor
        do throws(SystemError) { file = try FileDescriptor.opening(path) } catch {
            guard error.errno == ENOENT else { throw error }
            return .missing
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: LogScan.headerBytes, alignment: 8)
        defer { buffer.deallocate() }
        let length = try fill(buffer, from: file, at: 0)
        guard length > 0 else { return .missing }
        guard length == buffer.count,
            let scan = LogScan(header: UnsafeRawBufferPointer(buffer), recordsPages: recordsPages)
        else { return length < buffer.count || buffer.allSatisfy { $0 == 0 } ? .unwritten : .broken }
        return .scanned(try frames(of: file, scan))
    }

    private func frames(of file: borrowing FileDescriptor, _ start: LogScan) throws(SystemError) -> LogScan {
        var scan = start
        let frame = scan.frameBytes
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: frame * Self.framesAtOnce,
            alignment: 8
        )
        defer { buffer.deallocate() }
        var offset = LogScan.headerBytes
        while true {
            let count = try fill(buffer, from: file, at: offset)
            for start in stride(from: 0, through: count - frame, by: frame) {
                scan.read(UnsafeRawBufferPointer(rebasing: buffer[start..<start + frame]))
            }
            guard count == buffer.count else { break }
            offset += count
        }
        scan.end()
        return scan
    }

    /// Reads until the buffer is full or the file ends.
    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        from file: borrowing FileDescriptor,
        at offset: Int
    ) throws(SystemError) -> Int {
        let descriptor = file.rawValue
        var filled = 0
        while filled < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = try systemCall("read \(path)") {
                pread(descriptor, rest.baseAddress, rest.count, off_t(offset + filled))
            }
            guard count > 0 else { break }
            filled += count
        }
        return filled
    }
}

/// Reads the frames of a write-ahead log as SQLite's recovery does, and finds out what recovery would drop.
///
/// The log ([format](https://www.sqlite.org/fileformat2.html#walformat)) has a header of 32 bytes, followed by frames.
/// A frame consists of a header of 24 bytes and a page. It is valid if its salts are those of the log's header, and if
/// its checksum continues that of the previous frame. Recovery stops at the first invalid frame. It keeps the complete
/// commits before that frame, and drops the rest.
///
/// Every commit of durability `full` is synced before the next one is written. A power failure can therefore leave only
/// the last commit incomplete. If other commits follow an invalid frame, the commit that contains this frame was once
/// complete and was damaged later.
struct LogScan {
    static let headerBytes = 32
    static let frameHeaderBytes = 24

    /// The size of a frame in bytes, including its header.
    let frameBytes: Int
    private(set) var result = LogReport()
    /// Where the log contains the pages that recovery would keep. Empty unless the pages were asked for.
    private(set) var pages = LogPages()

    private let recordsPages: Bool
    private let isBigEndian: Bool
    private let salts: UInt64
    private var checksum: Checksum
    private var frame = 0
    private var isBroken = false
    private var hasOpenCommit = false

    /// - Parameters:
    ///   - header: The first ``headerBytes`` bytes of the log.
    ///   - recordsPages: Whether ``pages`` is wanted, which takes memory for each page in the log. Default `false`.
    /// - Returns: `nil` if the header is invalid, so that recovery would reject the log.
    init?(header: UnsafeRawBufferPointer, recordsPages: Bool = false) {
        let magic = header.number(at: 0)
        let pageSize = Int(header.number(at: 8))
        guard magic & ~1 == 0x377f_0682, header.number(at: 4) == 3_007_000, pageSize >= 512,
            pageSize <= 65_536,
            pageSize & (pageSize - 1) == 0
        else { return nil }
        isBigEndian = magic & 1 == 1
        salts = header.pair(at: 16)
        checksum = Checksum()
        checksum.add(header, 0..<24, isBigEndian: isBigEndian)
        guard checksum.value == header.pair(at: 24) else { return nil }
        self.recordsPages = recordsPages
        frameBytes = Self.frameHeaderBytes + pageSize
        result.pageSize = pageSize
    }

    /// Processes the next frame. A frame with other salts is left over from an earlier use of the file. It is invalid,
    /// but does not count as dropped.
    ///
    /// - Parameter bytes: One frame of ``frameBytes`` bytes.
    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        frame += 1
        let isOurs = bytes.pair(at: 8) == salts
        let (page, size) = (bytes.number(at: 0), bytes.number(at: 4))
        if !isBroken { isBroken = !(isOurs && page != 0 && continues(bytes)) }
        guard isOurs else { return }
        isBroken ? drop(isCommit: size != 0) : keep(page, size, bytes)
    }

    private mutating func continues(_ bytes: UnsafeRawBufferPointer) -> Bool {
        checksum.add(bytes, 0..<8, isBigEndian: isBigEndian)
        checksum.add(bytes, Self.frameHeaderBytes..<frameBytes, isBigEndian: isBigEndian)
        return checksum.value == bytes.pair(at: 16)
    }

    private mutating func keep(_ page: UInt32, _ size: UInt32, _ bytes: UnsafeRawBufferPointer) {
        hasOpenCommit = size == 0
        if recordsPages {
            let offset = Self.headerBytes + frameBytes * (frame - 1) + Self.frameHeaderBytes
            pages.add(page, at: offset, sizeAfterCommit: size)
        }
        if size != 0 { result.commits += 1 }
        if page == 1 { result.application = bytes.number(at: Self.frameHeaderBytes + 68) }
    }

    private mutating func drop(isCommit: Bool) {
        if result.firstBroken == nil { result.firstBroken = frame }
        hasOpenCommit = !isCommit
        if isCommit { result.droppedCommits += 1 }
    }

    /// Ends the scan. If the last frames have no end of a commit, they count as an unfinished commit.
    mutating func end() {
        result.hasUnfinishedCommit = hasOpenCommit
    }
}

/// Where a write-ahead log contains the pages of its complete commits.
struct LogPages {
    /// The offset in the log of the newest committed version of each page, by page number.
    private(set) var offsets: [UInt32: Int] = [:]
    /// The size of the database in pages after the last commit; 0 if there is no commit.
    private(set) var count = 0
    private var uncommitted: [UInt32: Int] = [:]

    /// - Parameter size: The size of the database in pages if the frame ends a commit; 0 if it does not.
    fileprivate mutating func add(_ page: UInt32, at offset: Int, sizeAfterCommit size: UInt32) {
        uncommitted[page] = offset
        guard size != 0 else { return }
        offsets.merge(uncommitted) { $1 }
        uncommitted = [:]
        count = Int(size)
    }
}

/// The checksum of SQLite's write-ahead logs: two interdependent sums over pairs of 32-bit words.
private struct Checksum {
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    /// Both sums, as they are stored in the log.
    var value: UInt64 { UInt64(first) << 32 | UInt64(second) }

    mutating func add(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, isBigEndian: Bool) {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let words = bytes.loadUnaligned(fromByteOffset: offset, as: (UInt32, UInt32).self)
            first &+= (isBigEndian ? words.0.bigEndian : words.0.littleEndian) &+ second
            second &+= (isBigEndian ? words.1.bigEndian : words.1.littleEndian) &+ first
            offset += 8
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func number(at offset: Int) -> UInt32 {
        UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    fileprivate func pair(at offset: Int) -> UInt64 {
        UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}

/// The content of a write-ahead log, and what SQLite's recovery would drop from it when the database is opened.
package struct LogReport: Hashable, Sendable {
    /// The number of commits that recovery will keep.
    package internal(set) var commits = 0
    /// The number of completely written commits that recovery will drop, because they follow an invalid frame.
    package internal(set) var droppedCommits = 0
    /// Whether the log ends with frames whose commit was never completed, because the process or the machine stopped.
    package internal(set) var hasUnfinishedCommit = false
    /// The number of the first frame of this log that recovery will ignore, counted from 1; `nil` if it will use all
    /// frames.
    package internal(set) var firstBroken: Int?
    /// The page size in bytes; `nil` if the header is not valid.
    package internal(set) var pageSize: Int?
    /// The `application_id` of the database according to the log; `nil` if the log does not contain the first page.
    package internal(set) var application: UInt32?
    /// Whether the header is damaged: neither valid nor empty. Recovery then ignores the whole log.
    package internal(set) var hasBrokenHeader = false
}

extension LogReport {
    /// The number of commits that recovery will drop, including an unfinished one.
    package var incompleteCommits: Int { droppedCommits + (hasUnfinishedCommit ? 1 : 0) }

    /// A description of damage that a power failure cannot cause, because each commit was synced before the next; `nil`
    /// if there is none.
    package var damage: String? {
        if hasBrokenHeader { return "the header of its log is damaged" }
        return droppedCommits > 1 ? brokenFrame : nil
    }

    /// A description of damage to the log of an open database, read between two commits; `nil` if there is none. Here a
    /// single dropped commit is damage, because no commit is in progress.
    package var damageWhileOpen: String? { droppedCommits > 0 ? brokenFrame : damage }

    private var brokenFrame: String? {
        firstBroken.map {
            "frame \($0) of its log is damaged; \(commitCount(droppedCommits)) from there on cannot be read"
        }
    }

    /// A note for the user about what recovery dropped; `nil` if it dropped nothing.
    package var note: String? {
        // A crash while SQLite restarts the log may also damage the header. In that case nothing is lost, because the
        // database already contains all commits.
        if hasBrokenHeader {
            return
                "the header of the database's log was damaged; commits that were only in the log were dropped"
        }
        guard incompleteCommits > 0 else { return nil }
        if let damage { return "the queue's database was damaged: \(damage); these commits were dropped" }
        return
            "the end of the database's log was incomplete; dropped \(commitCount(incompleteCommits))"
    }

    /// Returns why the log cannot belong to this database; `nil` if it can. The log of another queue is not detected.
    ///
    /// - Parameter header: The first 18 bytes of the database file, or fewer if the file is shorter.
    func mismatch(with header: [UInt8]) -> String? {
        guard commits + droppedCommits > 0, let pageSize else { return nil }
        if let application, application != 0, application != QueueSchema.applicationID {
            return "its log belongs to another program's database"
        }
        // The file of a new database may still be empty, with all of its content in the log.
        guard header.count >= 18 else { return nil }
        let found = Int(header[16]) << 8 | Int(header[17])
        let expected = found == 1 ? 65_536 : found
        return pageSize == expected
            ? nil
            : "its log belongs to another database: its pages have \(pageSize) bytes, the database's \(expected)"
    }

    private func commitCount(_ count: Int) -> String { count == 1 ? "1 commit" : "\(count) commits" }
}

/// Truncates SQLite's write-ahead log when reads have let it grow.
///
/// SQLite's automatic checkpoint stops at the snapshot of the oldest read, and SQLite starts the log again from its
/// beginning only when no read uses it. With one read after another, the log would grow without limit. When SQLite
/// starts the log again, it shortens the file (`journal_size_limit`), but only the next commits do that.
struct LogTruncation: Sendable {
    /// The size in bytes from which the log is truncated: 16 MiB.
    static let threshold = 2 * CommitBatcher.longestLog

    /// The path of the log.
    let log: String
    let reader: StoreReader
    private var next = Self.threshold

    init(of log: String, reader: StoreReader) {
        self.log = log
        self.reader = reader
    }

    /// Whether the log is long enough to be truncated.
    var isLong: Bool { FileSystem.size(of: log) > Self.threshold }

    /// Truncates the log if it is long and no read is in progress. If a read is in progress, this pauses the reader:
    /// until the log is short again, new reads run between the commits. Called on the writer's queue, after each commit
    /// and once a second.
    ///
    /// - Parameter isRepeated: Whether to try again although the log has not grown since the last attempt.
    mutating func run(on database: Database, isRepeated: Bool = false) {
        let size = FileSystem.size(of: log)
        guard size > Self.threshold else { return reset() }
        guard isRepeated || size > next, reader.pause() else { return }
        defer { reader.resume() }
        // Another process that reads the database may prevent the truncation. The next attempt then waits until the log
        // has grown by 8 MiB.
        next = Self.truncate(database) ? Self.threshold : size + CommitBatcher.longestLog
    }

    /// Allows reads again after SQLite has shortened the log.
    private mutating func reset() {
        next = Self.threshold
        reader.resume()
    }

    /// Returns whether the log was truncated. An error loses no data: the commits stay in the log.
    private static func truncate(_ database: Database) -> Bool {
        // Without this, the next commit would wait up to 10 s for a process that reads the database.
        sqlite3_busy_timeout(database.sqliteConnection, 0)
        defer { sqlite3_busy_timeout(database.sqliteConnection, CInt(QueueDatabase.busySeconds * 1000)) }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
