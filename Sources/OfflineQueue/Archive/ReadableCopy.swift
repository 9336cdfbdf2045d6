internal import Foundation

/// A database that is shorter than it says, made as long again in a copy: SQLite reads nothing at all of one that was
/// cut, though all pages before the cut are there. Blocks.
struct ReadableCopy {
    /// Where the database is to be read.
    let path: String
    private let directory: String?

    /// - Throws: When there is no room for a copy.
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

    /// By the header ([file format](https://www.sqlite.org/fileformat.html), 1.3): size of a page and number of pages.
    private static func claimedLength(of path: String) -> Int64? {
        guard let file = FileHandle(forReadingAtPath: path), let header = try? file.read(upToCount: 32),
            header.count == 32
        else { return nil }
        func number(_ offset: Int, _ count: Int) -> Int64 {
            header.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | Int64($1) }
        }
        let size = number(16, 2) == 1 ? 65_536 : number(16, 2)
        // Of a damaged header nothing is believed that no queue can come to.
        return number(28, 4) <= 1 << 24 ? size * number(28, 4) : nil
    }
}
