internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop

/// A file of mode 0600 that keeps the cookies of a storage.
///
/// The cookies are in memory. The file is written when they change, and read once. While it is in use, a lock on the
/// file `<path>.lock` excludes other processes, so that none overwrites the cookies of another.
final class CookieFile: Sendable {
    /// The storage in memory, with the cookies that the file had.
    let storage: HTTPCookieStorage
    private let path: String
    private let lock: LockFile
    /// Makes it atomic to read the storage and then write the file.
    private let writing = Lock<Void>(())

    private static let maximumBytes = 64 * 1024 * 1024

    /// Opens a file, which need not exist. Creates missing directories with mode 0700.
    init(_ path: String, at now: Date = Date()) throws(CookieFileError) {
        // An ephemeral configuration always has a new storage.
        guard let storage = URLSessionConfiguration.ephemeral.httpCookieStorage else {
            preconditionFailure("an ephemeral configuration has no storage of cookies")
        }
        self.path = path
        self.storage = storage
        lock = try Self.locked(path)
        for record in try Self.records(in: path) where record.isValid(at: now) {
            if let cookie = HTTPCookie(record) { storage.setCookie(cookie) }
        }
    }

    private static func locked(_ path: String) throws(CookieFileError) -> LockFile {
        do throws(SystemError) {
            try Directory.make(Directory.parent(of: path), mode: 0o700)
        } catch {
            throw CookieFileError(file: path, reason: .system(errno: error.errno))
        }
        do throws(LockFile.Failure) {
            return try LockFile.taking(path + ".lock")
        } catch {
            switch error {
            case .held: throw CookieFileError(file: path, reason: .inUse)
            case .system(let error): throw CookieFileError(file: path, reason: .system(errno: error.errno))
            }
        }
    }

    private static func records(in path: String) throws(CookieFileError) -> [CookieRecord] {
        // O_NONBLOCK: opening a FIFO must not block.
        let opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard opened >= 0 else {
            let error = errno
            if error == ENOENT { return [] }
            throw CookieFileError(file: path, reason: error == ELOOP ? .notPrivate : .system(errno: error))
        }
        let descriptor = FileDescriptor(owning: opened)
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid(), status.st_mode & 0o077 == 0
        else { throw CookieFileError(file: path, reason: .notPrivate) }
        // The file is not synced when it is written, so it may be empty after a power failure.
        if status.st_size == 0 { return [] }
        let file = FileHandle(fileDescriptor: descriptor.rawValue, closeOnDealloc: false)
        guard status.st_size <= maximumBytes, let data = try? file.readToEnd(),
            let records = CookieRecords(data: data)
        else { throw CookieFileError(file: path, reason: .damaged) }
        return records.cookies
    }

    /// Writes the cookies that are kept (``CookieRecord/isKept``). If this fails, the file has its old contents, and
    /// the cookies stay in memory. The next call writes all of them.
    ///
    /// - Throws: ``CookieFileError``.
    func save() throws {
        try writing.withLock { _ in
            let records = (storage.cookies ?? []).map(\.record).filter(\.isKept)
            let oldestFirst = records.sorted { $0.created ?? 0 < $1.created ?? 0 }
            do {
                let data = try CookieRecords(oldestFirst).data
                try PrivateFile.replace(path, with: Array(data), isDurable: false)
            } catch let error as SystemError {
                throw CookieFileError(file: path, reason: .system(errno: error.errno))
            }
        }
    }

    // MARK: The files of a program

    /// The files of the storages that the program has created. A storage has its file until the process ends.
    private static let files = Lock<[ObjectIdentifier: CookieFile]>([:])

    static func add(_ file: CookieFile) {
        files.withLock { $0[ObjectIdentifier(file.storage)] = file }
    }

    /// Returns the file of a storage; `nil` if it has none.
    static func file(of storage: HTTPCookieStorage) -> CookieFile? {
        files.withLock { $0[ObjectIdentifier(storage)] }
    }

    /// Returns the path of a file URL.
    static func path(of url: URL) throws(CookieFileError) -> String {
        do throws(SystemError) {
            return try url.localPath()
        } catch {
            throw CookieFileError(file: url.textWithoutSecrets, reason: .system(errno: error.errno))
        }
    }

    /// Returns the path of a program's own file: `$XDG_STATE_HOME/<program>/cookies.json`, or the same in
    /// `~/.local/state`.
    ///
    /// - Parameter program: The first argument of the program: its name, possibly with a path.
    static func standardPath(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        program: String = CommandLine.arguments.first ?? ""
    ) -> String {
        // The XDG specification ignores relative paths.
        let state = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let name = URL(fileURLWithPath: program).lastPathComponent
        return "\(state ?? NSHomeDirectory() + "/.local/state")/\(name)/cookies.json"
    }
}
