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
