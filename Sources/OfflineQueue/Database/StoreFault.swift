internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

/// The reasons why a database cannot be opened, grouped by what the user can do.
enum StoreFault: Error {
    /// The file is not a queue's database, or was written by a newer netwatch. The user must choose another file or
    /// upgrade; this process must not change the file.
    case foreign(String)
    /// The file is a queue's database, but its content is damaged. The user can set it aside.
    case damaged(String)
    /// A problem that may be temporary, such as a full disk. A retry may succeed.
    case passing(String)

    init(_ error: any Error) {
        switch error {
        case let fault as StoreFault: self = fault
        case let error as DatabaseError where error.resultCode.mayPass: self = .passing(Self.words(error))
        default: self = .damaged(Self.words(error))
        }
    }

    func error(path: String) -> QueueError {
        switch self {
        case .foreign(let why):
            QueueError(.storeUnusable, "the queue's database `\(path)` cannot be used: \(why)", path: path)
        case .damaged(let why):
            QueueError(
                .storeUnusable,
                "the queue's database `\(path)` is damaged: \(why); to move it away and save the readable requests, "
                    + "run `netwatch queue verify --set-aside` (with `--state-dir` for a queue in another directory)",
                path: path
            )
        case .passing(let why):
            QueueError(
                .storeUnavailable,
                "the queue's database `\(path)` cannot be opened now: \(Self.explained(why, at: path))",
                path: path
            )
        }
    }
}

extension StoreFault {
    /// Returns whether an error means that the content of the database is damaged.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        default: error is DamagedColumn
        }
    }

    /// Returns whether an error means that the disk cannot read a part of the database.
    static func isUnreadable(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return error.resultCode == .SQLITE_IOERR && error.extendedResultCode != .SQLITE_IOERR_NOMEM
    }

    /// Returns an error message of SQLite with its cause if the file system is read-only. The kernel makes a file
    /// system read-only after a disk error. SQLite then reports only that it cannot open or write a file.
    ///
    /// - Parameter path: The path of the database.
    static func explained(_ words: String, at path: String) -> String {
        explained(words, isReadOnly: FileSystem.isReadOnly(at: path))
    }

    /// Returns an error message of SQLite with its cause if the file system is read-only.
    static func explained(_ words: String, isReadOnly: Bool) -> String {
        isReadOnly ? "\(errnoDescription(EROFS)) (\(words))" : words
    }

    /// Returns the message of an error.
    static func words(_ error: any Error) -> String {
        guard let error = error as? DatabaseError else { return "\(error)" }
        let words = error.message ?? error.resultCode.description
        if error.resultCode == .SQLITE_CORRUPT { return "a part of the database is damaged (\(words))" }
        // SQLite's message does not contain the reason why it cannot open a file.
        let isShort = error.resultCode == .SQLITE_CANTOPEN && DescriptorSupply.isShort
        return isShort ? "\(words); this process has no free file descriptors" : words
    }
}

extension ResultCode {
    /// Whether the error may be temporary. Examples are a lock of another process, a full or failing disk, a shortage
    /// of memory, and missing permissions.
    var mayPass: Bool {
        switch self {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_IOERR, .SQLITE_FULL, .SQLITE_CANTOPEN, .SQLITE_NOMEM,
            .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_PROTOCOL, .SQLITE_INTERRUPT, .SQLITE_AUTH:
            true
        default: false
        }
    }
}

/// The file `queue.damaged` next to the database. It records damage that a running queue found.
///
/// Opening a store checks only a few pages, because a full check would take time in proportion to the store's size.
/// Without this file, a service that stopped at a damaged page would be restarted, notice nothing, and stop at the same
/// page again.
struct DamageMarker {
    private let path: String
    private let directory: String

    init(directory: String) {
        self.directory = directory
        path = "\(directory)/queue.damaged"
    }

    /// The recorded damage (the first line of the file); `nil` if there is no file.
    var text: String? {
        guard let file = try? FileDescriptor.opening(path) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = max(0, pread(file.rawValue, &bytes, bytes.count, 0))
        return String(decoding: bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// The directory to which the damaged store is being moved (the second line of the file); `nil` if no move has
    /// begun.
    var target: String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n")
        return lines.count > 1 ? String(lines[1]) : nil
    }

    /// Writes the file and syncs it.
    ///
    /// - Parameters:
    ///   - text: The damage. Only the first 500 characters are kept, on one line.
    ///   - target: The directory to which the store is about to be moved.
    func write(_ text: String, target: String? = nil) throws(SystemError) {
        let line = text.replacing("\n", with: " ").prefix(500)
        let bytes = Array("\(line)\n\(target.map { "\($0)\n" } ?? "")".utf8)
        let file = try FileDescriptor.openingPrivate(path)
        let descriptor = file.rawValue
        try systemCall("ftruncate \(path)") { ftruncate(descriptor, 0) }
        try systemCall("pwrite \(path)") { pwrite(descriptor, bytes, bytes.count, 0) }
        try systemCall("fsync \(path)") { fsync(descriptor) }
        try Directory.sync(directory)
    }

    func remove() throws(SystemError) {
        try Directory.removeFile(path)
        try Directory.sync(directory)
    }
}
