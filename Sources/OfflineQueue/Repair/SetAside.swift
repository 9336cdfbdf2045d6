internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Moves a damaged store into a new directory, so that the queue can start with an empty store.
///
/// The file `queue.damaged` is written first and removed last. While it exists, no store can be opened in the
/// directory. A crash therefore leaves either the old store in place, or a move that the next call completes.
struct SetAside: Sendable {
    private static let files = [
        "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal", "spool",
        "queue.scan",
    ]

    private let directory: QueueDirectory

    /// - Parameter directory: The directory of the store. The caller must hold its locks until ``run(evenIfSound:)``
    ///   returns.
    init(_ directory: QueueDirectory) {
        self.directory = directory
    }

    /// Checks the store, and moves it if it is damaged. Completes a move that an earlier run has begun.
    ///
    /// - Parameter evenIfSound: Whether to move the store even if it is not damaged.
    /// - Returns: The new path and the reason for the move; `nil` if the store was not moved, because it is sound.
    /// - Throws: ``QueueError`` if the store cannot be checked or moved.
    func run(evenIfSound: Bool) async throws -> (path: String, reason: String)? {
        let found = await DispatchQueue.global().run { [directory] in
            directory.damage.target == nil ? nil : directory.damage.text
        }
        var reason = found
        if reason == nil { reason = try await diagnosis() }
        if reason == nil, evenIfSound { reason = "requested by the caller" }
        return try await DispatchQueue.global().run { [reason] in
            try usable { () throws(SystemError) in
                if let reason { return (try move(for: reason), reason) }
                try directory.damage.remove()
                return nil
            }
        }
    }

    /// Checks the whole store, and returns the first damage; `nil` if it is sound.
    ///
    /// - Throws: ``QueueError`` if the database belongs to another program or to a newer version, or if it cannot be
    ///   opened now.
    func diagnosis() async throws -> String? {
        if directory.isDatabaseLost { return "the database file is missing" }
        do {
            let inspector = try await DispatchQueue.global().run { [directory] in
                if let damage = try QueueDatabase.leftoverLog(of: directory.databasePath)?.damage {
                    throw StoreFault.damaged(damage)
                }
                try QueueDatabase.checkReadOnly(directory.databasePath)
                let isNew = FileSystem.size(of: directory.databasePath) == 0
                return isNew ? nil : try Inspector(database: directory.databasePath)
            }
            return try await inspector?.structure().findings.first?.message
        } catch {
            switch StoreFault(error) {
            case .damaged(let reason): return reason
            case let fault: throw fault.error(path: directory.databasePath)
            }
        }
    }

    private func move(for reason: String) throws(SystemError) -> String {
        let target = if let begun = directory.damage.target { begun } else { try makeTarget() }
        try directory.damage.write(reason, target: target)
        for name in Self.files { try move(name, to: target) }
        try Directory.sync(target)
        try directory.damage.remove()
        return target
    }

    private func makeTarget() throws(SystemError) -> String {
        let time = Date().formatted(.iso8601.dateSeparator(.omitted).timeSeparator(.omitted))
        var (path, number) = ("\(directory.path)/damaged-\(time)", 1)
        while try !Directory.make(path, mode: 0o700) {
            number += 1
            path = "\(directory.path)/damaged-\(time)-\(number)"
        }
        return path
    }

    /// Moves a file, unless an earlier run has already moved it. In that case there may be a new, empty file at the old
    /// path, because opening the directory creates the database file.
    private func move(_ name: String, to target: String) throws(SystemError) {
        let (old, new) = ("\(directory.path)/\(name)", "\(target)/\(name)")
        guard access(old, F_OK) == 0 else { return }
        guard access(new, F_OK) != 0 else {
            if isEmpty(old) { return }
            throw SystemError(call: "rename \(old)", errno: EEXIST)
        }
        try systemCall("rename \(old)") { rename(old, new) }
    }

    private func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    private func usable<Value>(_ body: () throws(SystemError) -> Value) throws(QueueError) -> Value {
        do throws(SystemError) { return try body() } catch {
            throw QueueError(.directoryUnusable, "the store cannot be moved: \(error)", path: directory.path)
        }
    }
}

/// The condition of a store that no process has open.
package struct StoreExamination: Hashable, Sendable {
    /// The first damage; `nil` if there is none.
    package let damage: String?
    /// The size of the database and its log in bytes; 0 if there is no database yet.
    package let databaseBytes: Int64
    /// The number of free bytes on the file system of the store.
    package let freeBytes: Int64
    /// The number of bytes that new requests must leave free: ``QueueLimits/diskReserve``, or less on a small file
    /// system; 0 if its size is not known.
    package let diskReserve: Int64
    /// Whether a queue with these limits would accept no requests, because less than ``diskReserve`` is free.
    package var isDiskFull: Bool { freeBytes < diskReserve }

    /// - Parameters:
    ///   - limits: The limits of the queue.
    ///   - space: The space of the file system; `nil` if it is not known.
    init(of directory: QueueDirectory, damage: String?, limits: QueueLimits, space: FileSystem.Space?) {
        self.damage = damage
        let database = directory.databasePath
        databaseBytes = FileSystem.size(of: database) + FileSystem.size(of: "\(database)-wal")
        freeBytes = space?.free ?? 0
        diskReserve = space.map(limits.diskReserve(of:)) ?? 0
    }
}

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
