internal import Glibc
internal import NetwatchEventLoop

/// The pages of a database file, read without SQLite, which refuses a database whose first page is damaged. A page that
/// the write-ahead log contains in a complete commit is read from there. All methods block.
///
/// Closing a descriptor of the file releases SQLite's locks on it. Therefore no connection of this process may be in a
/// transaction of the database while this object exists or is released.
final class DatabasePages {
    /// SQLite's default since 3.12, which the store does not change.
    private static let defaultPageBytes = 4096
    private static let headerBytes = 100
    /// More pages than any queue has. A damaged page may contain any number.
    private static let maximumCount = 1 << 24

    /// The size of a page in bytes.
    let pageBytes: Int
    /// The number of pages, which are numbered from 1.
    let count: Int
    /// The head of the list of free pages and its length, from the file's header; `nil` if the first page has no valid
    /// header.
    private(set) var freeList: (first: Int, count: Int)?

    private let file: PageFile?
    private let log: (file: PageFile, pages: LogPages)?

    /// - Parameter path: The path of the database. If there is no such file, all pages are read from the log.
    init(of path: String) throws(SystemError) {
        file = try PageFile(path)
        let first = file?.bytes(at: 0, count: Self.headerBytes) ?? []
        if let found = try LogFile(of: path).pages(), let file = try PageFile("\(path)-wal") {
            log = (file, found.pages)
            pageBytes = found.pageBytes
        } else {
            log = nil
            pageBytes = Self.pageBytes(of: first) ?? Self.defaultPageBytes
        }
        let pagesInFile = Int(clamping: FileSystem.size(of: path)) / pageBytes
        count = min(Self.maximumCount, max(pagesInFile, log?.pages.count ?? 0))
        guard let header = page(1), Self.pageBytes(of: header) == pageBytes else { return }
        freeList = (Int(header.number(at: 32)), Int(header.number(at: 36)))
    }

    /// Returns the content of a page; `nil` if there is no such page, or if it cannot be read.
    func page(_ number: Int) -> [UInt8]? {
        guard number > 0, number <= count else { return nil }
        if let log, let offset = log.pages.offsets[UInt32(number)] {
            return log.file.bytes(at: offset, count: pageBytes)
        }
        return file?.bytes(at: (number - 1) * pageBytes, count: pageBytes)
    }

    /// Returns the page size according to a file's header; `nil` if the header is not valid.
    private static func pageBytes(of header: [UInt8]) -> Int? {
        guard header.count >= headerBytes, header.starts(with: "SQLite format 3\0".utf8) else { return nil }
        let stored = Int(header[16]) << 8 | Int(header[17])
        let size = stored == 1 ? 65_536 : stored
        return size >= 512 && size & (size - 1) == 0 ? size : nil
    }
}

/// A file that contains pages.
private final class PageFile {
    private let descriptor: FileDescriptor

    /// - Returns: `nil` if there is no such file.
    init?(_ path: String) throws(SystemError) {
        do throws(SystemError) {
            descriptor = try FileDescriptor.opening(path)
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
    }

    /// Reads bytes; `nil` if the file ends before, or if a sector cannot be read.
    func bytes(at offset: Int, count: Int) -> [UInt8]? {
        let descriptor = descriptor.rawValue
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count, let start = buffer.baseAddress {
                let (place, rest) = (off_t(offset + filled), count - filled)
                let result = try? systemCall("pread") { pread(descriptor, start + filled, rest, place) }
                guard let result, result > 0 else { break }
                filled += result
            }
        }
        return bytes.count == count ? bytes : nil
    }
}

extension [UInt8] {
    /// Returns the big-endian 32-bit number at an offset.
    func number(at offset: Int) -> UInt32 {
        self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
