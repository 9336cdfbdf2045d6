internal import Foundation

/// A readable copy of a truncated database, extended to the length in its header. SQLite refuses to read a truncated
/// database, although all pages before the end are intact. A database that is not truncated is used in place. Blocks.
struct ReadableCopy {
    /// The path of the readable database.
    let path: String
    private let directory: String?

    /// - Throws: An error when the copy cannot be written, for example because the disk is full.
    init(of directory: String) throws {
        let original = "\(directory)/queue.sqlite"
        guard let length = Self.claimedLength(of: original), length > FileSystem.size(of: original) else {
            (path, self.directory) = (original, nil)
            return
        }
        let copy = "\(directory)/readable-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: false)
        for name in ["queue.sqlite", "queue.sqlite-wal"] where FileSystem.size(of: "\(directory)/\(name)") > 0
        {
            try FileManager.default.copyItem(atPath: "\(directory)/\(name)", toPath: "\(copy)/\(name)")
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: "\(copy)/queue.sqlite"))
        try file.truncate(atOffset: UInt64(length))
        try file.close()
        (path, self.directory) = ("\(copy)/queue.sqlite", copy)
    }

    func remove() {
        if let directory { try? FileManager.default.removeItem(atPath: directory) }
    }

    /// The size according to the header ([file format](https://www.sqlite.org/fileformat.html), 1.3): the page size
    /// times the number of pages.
    private static func claimedLength(of path: String) -> Int64? {
        guard let file = FileHandle(forReadingAtPath: path), let header = try? file.read(upToCount: 32),
            header.count == 32
        else { return nil }
        func number(_ offset: Int, _ count: Int) -> Int64 {
            header.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | Int64($1) }
        }
        let size = number(16, 2) == 1 ? 65_536 : number(16, 2)
        // A damaged header may contain any number, so numbers of pages that no queue can reach are ignored.
        return number(28, 4) <= 1 << 24 ? size * number(28, 4) : nil
    }
}
