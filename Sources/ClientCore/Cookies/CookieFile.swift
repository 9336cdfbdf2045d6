public import Foundation
public import FoundationNetworking
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

/// The properties of a cookie that are stored.
struct CookieRecord: Codable, Equatable, Sendable {
    var name: String
    var value: String
    /// The domain; see ``CookieKey/domain``.
    var domain: String
    var path: String
    /// `nil` for a cookie that ends with the process.
    var expires: Date?
    var isSecure: Bool
    var isHTTPOnly: Bool
    /// The time at which the cookie was first created, in seconds since 2001; `nil` for a cookie that the program has
    /// stored.
    var created: TimeInterval?

    /// Whether the record is written to a file: it has an expiry date, and JSON can represent this date. A program may
    /// store a cookie whose date is infinite or not a number.
    var isKept: Bool { expires?.timeIntervalSinceReferenceDate.isFinite ?? false }

    /// Whether the record may be used: it is kept, has not expired, and is for no public suffix.
    func isValid(at now: Date) -> Bool {
        guard let expires, expires > now else { return false }
        return !domain.hasPrefix(".") || !PublicSuffixes.contains(String(domain.dropFirst()))
    }
}

extension CookieRecord {
    init(_ cookie: AcceptedCookie, created: TimeInterval) {
        let (key, parsed) = (cookie.key, cookie.parsed)
        self.init(
            name: parsed.name,
            value: parsed.value,
            domain: key.domain,
            path: key.path,
            expires: parsed.expires,
            isSecure: parsed.isSecure,
            isHTTPOnly: parsed.isHTTPOnly,
            created: created
        )
    }
}

/// The contents of a file of cookies: JSON.
struct CookieRecords: Codable {
    /// The version of the format.
    private static let currentVersion = 1

    private var version = CookieRecords.currentVersion
    var cookies: [CookieRecord]

    init(_ cookies: [CookieRecord]) { self.cookies = cookies }

    /// Returns `nil` if the data has another format.
    init?(data: Data) {
        guard let decoded = try? JSONDecoder().decode(CookieRecords.self, from: data),
            decoded.version == Self.currentVersion
        else { return nil }
        self = decoded
    }

    var data: Data {
        get throws { try JSONEncoder().encode(self) }
    }
}

/// The error for a file of cookies that cannot be read or written.
public struct CookieFileError: Error, Hashable, Sendable {
    /// The reasons for the error.
    public enum Reason: Hashable, Sendable {
        /// Another process, or another storage of this process, uses the file.
        case inUse
        /// The file belongs to another user, or other users may read or change it.
        case notPrivate
        /// The file was not written by netwatch, is damaged, or has more than 64 MiB.
        case damaged
        /// The storage has no file.
        case noFile
        /// A system call has failed. The value is the system's error number, see `errno(3)`.
        case system(errno: Int32)
    }

    /// The path of the file; empty for ``Reason-swift.enum/noFile``.
    public let file: String
    /// The reason for the error.
    public let reason: Reason
}

extension CookieFileError: LocalizedError, CustomStringConvertible {
    /// The file, the error, and what to do.
    public var description: String {
        switch reason {
        case .inUse: "the cookies in `\(file)` are in use by another process or storage"
        case .notPrivate: "`\(file)` must be a file of this user with mode 0600"
        case .damaged: "`\(file)` does not contain cookies, or is damaged; remove it to begin without cookies"
        case .noFile: "the cookies have no file; use a storage from `file(at:)`"
        case .system(let errno): "cookies in `\(file)`: \(errnoDescription(errno))"
        }
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}

extension HTTPCookieStorage {
    /// Returns a storage whose cookies are kept in a file that only this user can read (mode 0600).
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.default
    /// configuration.httpCookieStorage = try .file()
    /// let session = SessionManager(configuration: configuration)
    /// ```
    ///
    /// Use it for `URLSessionConfiguration.httpCookieStorage`, in one or several sessions. The sessions write the file
    /// whenever a response changes the cookies. They do not sync it, so a power failure may lose the latest changes. If
    /// the file cannot be written, for example because the disk is full, the cookies stay in memory, and the next
    /// change writes all of them. ``saveToFile()`` reports the error. Changes that the program makes itself are written
    /// with the next change, or by ``saveToFile()``.
    ///
    /// Cookies without an expiry date, or with a date that is not finite, end with the process. The order in which
    /// cookies are sent survives a restart.
    ///
    /// - Parameter url: The file, which need not exist. Missing directories are created with mode 0700. Default `nil`:
    ///   `$XDG_STATE_HOME/<program>/cookies.json`, or the same in `~/.local/state`, with the name of the executable.
    /// - Throws: ``CookieFileError``, for example if other users can read the file, if the file is damaged, or if
    ///   another process or storage uses it. The file is then unchanged.
    public static func file(at url: URL? = nil) throws -> HTTPCookieStorage {
        let file = try CookieFile(url.map(CookieFile.path(of:)) ?? CookieFile.standardPath())
        CookieFile.add(file)
        return file.storage
    }

    /// Writes the cookies to the file of a storage that ``file(at:)`` has returned. Blocks until they are written.
    ///
    /// May be called from any thread.
    ///
    /// - Throws: ``CookieFileError``. The cookies then stay in memory.
    public func saveToFile() throws {
        guard let file = CookieFile.file(of: self) else { throw CookieFileError(file: "", reason: .noFile) }
        try file.save()
    }
}
