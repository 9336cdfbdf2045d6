internal import Foundation
internal import GRDB
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

/// A page of a B-tree in the [file format](https://www.sqlite.org/fileformat2.html#b_tree_pages) of SQLite. Each offset
/// in the page is checked, because the page may be damaged.
struct TreePage {
    enum Kind: UInt8 {
        case interiorIndex = 2
        case interiorTable = 5
        case leafIndex = 10
        case leafTable = 13

        var isInterior: Bool { self == .interiorIndex || self == .interiorTable }
        var isTable: Bool { self == .interiorTable || self == .leafTable }
    }

    /// A record, of which the rest may be in overflow pages.
    struct Cell {
        /// The row number; `nil` in an index.
        var row: Int64?
        /// The size of the whole record in bytes.
        var size: Int
        /// The part of the record in this page.
        var local: ArraySlice<UInt8>
        /// The first overflow page; 0 if there is none.
        var overflow: Int
    }

    /// A page below an interior page.
    struct Child {
        var page: Int
        /// The largest row number in the child; `nil` in an index, and for the last child.
        var lastRow: Int64?
    }

    let kind: Kind
    private let bytes: [UInt8]
    private let start: Int
    private let offsets: [Int]

    /// - Parameters:
    ///   - bytes: The whole page.
    ///   - number: The number of the page. The first page begins with the header of the file.
    /// - Returns: `nil` if this is not a page of a B-tree, or if a cell would be outside the page.
    init?(_ bytes: [UInt8], number: Int) {
        start = number == 1 ? 100 : 0
        guard bytes.count >= 512, let kind = Kind(rawValue: bytes[start]) else { return nil }
        (self.kind, self.bytes) = (kind, bytes)
        let first = start + (kind.isInterior ? 12 : 8)
        let count = Self.word(bytes, start + 3)
        let end = first + 2 * count
        guard end <= bytes.count else { return nil }
        offsets = (0..<count).map { Self.word(bytes, first + 2 * $0) }
        // The shortest cell has four bytes.
        guard offsets.allSatisfy({ $0 >= end && $0 <= bytes.count - 4 }) else { return nil }
    }

    /// The pages below this one, in the order of their keys; empty for a leaf.
    var children: [Child] {
        guard kind.isInterior else { return [] }
        let last = Child(page: Int(bytes.number(at: start + 8)))
        return offsets.map { offset in
            var reader = ByteReader(bytes[(offset + 4)...])
            let key = kind.isTable ? reader.varint() : nil
            return Child(page: Int(bytes.number(at: offset)), lastRow: key)
        } + [last]
    }

    /// The records of the page, in the order of their keys; `nil` for a cell that is not valid. Only the interior pages
    /// of tables contain no records.
    var cells: [Cell?] {
        guard kind != .interiorTable else { return [] }
        // The cells of a page do not overlap. Otherwise a small file could contain gigabytes of records.
        var room = bytes.count
        return offsets.map { offset in
            guard let cell = cell(at: kind.isInterior ? offset + 4 : offset), cell.local.count <= room else {
                return nil
            }
            room -= cell.local.count
            return cell
        }
    }

    private func cell(at offset: Int) -> Cell? {
        var reader = ByteReader(bytes[offset...])
        guard let stored = reader.varint(), let size = Int(exactly: stored), size > 0 else { return nil }
        var row: Int64?
        if kind == .leafTable {
            row = reader.varint()
            guard row != nil else { return nil }
        }
        let isLocal = size <= maximumLocal
        guard let local = reader.bytes(isLocal ? size : localPart(of: size)) else { return nil }
        guard !isLocal else { return Cell(row: row, size: size, local: local, overflow: 0) }
        guard let page = reader.bytes(4) else { return nil }
        return Cell(row: row, size: size, local: local, overflow: Int([UInt8](page).number(at: 0)))
    }

    /// The largest record without overflow pages.
    private var maximumLocal: Int {
        kind.isTable ? bytes.count - 35 : (bytes.count - 12) * 64 / 255 - 23
    }

    /// Returns how many bytes of a record with overflow pages are in this page.
    private func localPart(of size: Int) -> Int {
        let minimum = (bytes.count - 12) * 32 / 255 - 23
        let part = minimum + (size - minimum) % (bytes.count - 4)
        return part <= maximumLocal ? part : minimum
    }

    private static func word(_ bytes: [UInt8], _ offset: Int) -> Int {
        Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }
}

/// Reads numbers from bytes, and stops at their end.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The number of bytes that are left.
    var count: Int { rest.count }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Reads a big-endian number in two's complement of 0 to 8 bytes.
    mutating func integer(_ count: Int) -> Int64? {
        guard let digits = bytes(count) else { return nil }
        let isNegative = (digits.first ?? 0) & 0x80 != 0
        return digits.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }
    }

    /// Reads a number of 1 to 9 bytes: seven bits in each of the first eight, and eight in the ninth.
    mutating func varint() -> Int64? {
        var value: UInt64 = 0
        for place in 1...9 {
            guard let byte = bytes(1)?.first else { return nil }
            if place == 9 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7f)
            if byte & 0x80 == 0 { return Int64(bitPattern: value) }
        }
        return nil
    }
}

/// The values of a row in the [record format](https://www.sqlite.org/fileformat2.html#record_format) of SQLite.
struct Record {
    /// SQLite's default limit (`SQLITE_MAX_COLUMN`).
    private static let mostColumns = 2000

    let values: [DatabaseValue]

    /// - Returns: `nil` if the bytes are not exactly one record, or if a text is not valid UTF-8.
    init?(_ bytes: [UInt8]) {
        var header = ByteReader(bytes[...])
        guard let size = header.varint(), size > 0, size <= bytes.count else { return nil }
        let own = bytes.count - header.count
        guard own <= size, let codes = header.bytes(Int(size) - own) else { return nil }
        var (types, content) = (ByteReader(codes), header)
        var values: [DatabaseValue] = []
        while !types.isAtEnd {
            guard values.count < Self.mostColumns, let type = types.varint(),
                let value = Self.value(of: type, &content)
            else { return nil }
            values.append(value)
        }
        guard content.isAtEnd else { return nil }
        self.values = values
    }

    private static func value(of type: Int64, _ content: inout ByteReader) -> DatabaseValue? {
        switch type {
        case 0: return .null
        case 1...4: return content.integer(Int(type))?.databaseValue
        case 5: return content.integer(6)?.databaseValue
        case 6: return content.integer(8)?.databaseValue
        case 7: return content.integer(8).map { Double(bitPattern: UInt64(bitPattern: $0)).databaseValue }
        case 8, 9: return (type - 8).databaseValue
        // 10 and 11 are not used in files.
        case 12...:
            guard let bytes = content.bytes(Int(clamping: (type - 12) / 2)) else { return nil }
            return type % 2 == 0
                ? Data(bytes).databaseValue
                : String(validating: bytes, as: UTF8.self)?.databaseValue
        default: return nil
        }
    }
}
