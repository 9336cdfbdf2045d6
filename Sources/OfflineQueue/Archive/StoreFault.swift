internal import GRDB

extension ResultCode {
    /// What says that bytes on the disk are not what was written there.
    var isDamage: Bool { self == .SQLITE_CORRUPT || self == .SQLITE_NOTADB }

    /// What may be over by the next try: somebody else's lock, a full or failing disk, too little memory.
    var mayPass: Bool {
        switch self {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_IOERR, .SQLITE_FULL, .SQLITE_CANTOPEN, .SQLITE_NOMEM,
            .SQLITE_PERM,
            .SQLITE_READONLY, .SQLITE_PROTOCOL, .SQLITE_INTERRUPT, .SQLITE_NOLFS, .SQLITE_AUTH:
            true
        default: false
        }
    }
}
