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
