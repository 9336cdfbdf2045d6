internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A database that SQLite can read, made from one that may be truncated. SQLite refuses to read a database file that is
/// shorter than its header says, although the remaining pages are intact. Such a file is copied, and the copy is
/// extended to the length in the header. A database that is not truncated is used in place. All methods block.
struct ReadableCopy {
    /// The path of the readable database: the copy, or the original if there is no copy.
    let path: String
    private let directory: String?

    /// Copies the database if it is truncated.
    ///
    /// - Parameter directory: The directory of the database; a copy is created in a new directory inside it.
    /// - Throws: An error if the copy cannot be written, for example because the disk is full.
    init(of directory: String) throws {
        let original = "\(directory)/queue.sqlite"
        guard let length = Self.claimedLength(of: original), length > FileSystem.size(of: original) else {
            (path, self.directory) = (original, nil)
            return
        }
        let copy = "\(directory)/readable-\(UUID().uuidString)"
        try Directory.make(copy, mode: 0o700)
        for name in ["queue.sqlite", "queue.sqlite-wal"] where FileSystem.size(of: "\(directory)/\(name)") > 0
        {
            try FileManager.default.copyItem(atPath: "\(directory)/\(name)", toPath: "\(copy)/\(name)")
            // The umask may have removed permissions.
            try systemCall("chmod \(copy)/\(name)") { chmod("\(copy)/\(name)", 0o600) }
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: "\(copy)/queue.sqlite"))
        try file.truncate(atOffset: UInt64(length))
        try file.close()
        (path, self.directory) = ("\(copy)/queue.sqlite", copy)
    }

    /// Removes the copy, if there is one.
    func remove() {
        if let directory { try? FileManager.default.removeItem(atPath: directory) }
    }

    /// Returns the size of the database according to its header ([file format](https://www.sqlite.org/fileformat.html),
    /// 1.3): the page size times the number of pages. Returns `nil` if there is no plausible header.
    private static func claimedLength(of path: String) -> Int64? {
        guard let file = FileHandle(forReadingAtPath: path), let header = try? file.read(upToCount: 32),
            header.count == 32
        else { return nil }
        func number(_ offset: Int, _ count: Int) -> Int64 {
            header.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | Int64($1) }
        }
        let size = number(16, 2) == 1 ? 65_536 : number(16, 2)
        // A damaged header may contain any number. A number of pages that no queue can reach counts as damage.
        return number(28, 4) <= 1 << 24 ? size * number(28, 4) : nil
    }
}
