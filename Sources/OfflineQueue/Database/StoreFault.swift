internal import GRDB
internal import NetwatchEventLoop

/// The kinds of reasons why a database cannot be opened, by what the user can do about them.
enum StoreFault: Error {
    /// The file is not a queue's database, or needs a newer netwatch. It must not be changed.
    case foreign(String)
    /// The file is a queue's database, but its content has changed on the disk.
    case damaged(String)
    /// A temporary problem. A retry may succeed.
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
            QueueError(.storeUnusable, "the queue's database cannot be used: \(why)", path: path)
        case .damaged(let why):
            QueueError(
                .storeUnusable,
                "the queue's database is damaged: \(why); `netwatch queue verify --set-aside`, with `--state-dir` "
                    + "unless the queue is in its default directory, moves it away and saves what can be read",
                path: path
            )
        case .passing(let why):
            QueueError(.storeUnavailable, "the queue's database cannot be opened now: \(why)", path: path)
        }
    }
}

extension StoreFault {
    /// Returns whether an error reports that bytes on the disk differ from those that were written.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        default: error is DamagedColumn
        }
    }

    static func words(_ error: any Error) -> String {
        guard let error = error as? DatabaseError else { return "\(error)" }
        let words = error.message ?? error.resultCode.description
        // SQLite does not report why it cannot open a file.
        let isShort = error.resultCode == .SQLITE_CANTOPEN && DescriptorSupply.isShort
        return isShort ? "\(words); this process has no free file descriptors" : words
    }
}

extension ResultCode {
    /// Whether the error may pass: a lock of another process, a full or failing disk, a lack of memory, missing
    /// permissions.
    var mayPass: Bool {
        switch self {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_IOERR, .SQLITE_FULL, .SQLITE_CANTOPEN, .SQLITE_NOMEM,
            .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_PROTOCOL, .SQLITE_INTERRUPT, .SQLITE_AUTH:
            true
        default: false
        }
    }
}
