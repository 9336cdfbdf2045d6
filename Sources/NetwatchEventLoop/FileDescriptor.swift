internal import Glibc

/// The one owner of an open file descriptor, closed when the owner goes out of scope.
///
/// `close(2)` may report a delayed write error; nothing netwatch writes through these descriptors
/// (sockets, eventfds, timers, lock files) has one, so the result is not looked at.
package struct FileDescriptor: ~Copyable, Sendable {
    package let rawValue: CInt

    /// Takes ownership of `rawValue`.
    package init(owning rawValue: CInt) {
        self.rawValue = rawValue
    }

    deinit {
        _ = close(rawValue)
    }

    /// Gives the descriptor to another owner, who closes it.
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

    /// Opens a file for reading and writing, close-on-exec, and makes it when it is missing; with permissions
    /// 0600 whatever the umask. A symbolic link is refused.
    package static func openingPrivate(_ path: String) throws(SystemError) -> FileDescriptor {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
        let descriptor = file.rawValue
        try systemCall("fchmod \(path)") { fchmod(descriptor, 0o600) }
        return file
    }
}
