internal import Glibc

/// The unique owner of an open file descriptor, which it closes when it goes out of scope.
///
/// The result of `close(2)` is ignored. It could report a delayed write error, but nothing that netwatch writes
/// through these descriptors (sockets, eventfds, timers, lock files) causes one.
package struct FileDescriptor: ~Copyable, Sendable {
    package let rawValue: CInt

    /// Takes ownership of `rawValue`.
    package init(owning rawValue: CInt) {
        self.rawValue = rawValue
    }

    deinit {
        _ = close(rawValue)
    }

    /// Transfers the descriptor to another owner, which must close it.
    consuming func release() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }
}

extension FileDescriptor {
    /// Opens a file read-only and close-on-exec (`open(2)`).
    package static func opening(_ path: String) throws(SystemError) -> FileDescriptor {
        FileDescriptor(owning: try systemCall("open \(path)") { open(path, O_RDONLY | O_CLOEXEC) })
    }

    /// Opens a file for reading and writing, close-on-exec. Creates a missing file with permissions 0600, regardless of
    /// the umask. Throws `ELOOP` for a symbolic link.
    package static func openingPrivate(_ path: String) throws(SystemError) -> FileDescriptor {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
        let descriptor = file.rawValue
        try systemCall("fchmod \(path)") { fchmod(descriptor, 0o600) }
        return file
    }
}
