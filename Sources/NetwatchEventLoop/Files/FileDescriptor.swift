internal import CNetwatchLinux
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

/// The supply of descriptors that this process can still open.
package enum DescriptorSupply {
    /// The number of descriptors that one connection needs: one for its socket, one for a certificate file, and two for
    /// a name lookup.
    private static let needed = 4

    /// The number of descriptors below the process's limit that connections must leave free for files.
    ///
    /// The database of a request queue needs some of them. libdispatch needs the others: while its threads are busy, it
    /// opens one file per thread once a second (`_dispatch_workq_monitor_pools`, `/proc/self/task/TID/stat`), and ends
    /// the process if it cannot.
    private static let reserve: rlim_t = 8

    /// Returns whether a descriptor is one of the last below the process's limit (`RLIMIT_NOFILE`). Few others are free
    /// then, because the kernel always returns the lowest free number.
    package static func isReserved(_ descriptor: CInt) -> Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
        return rlim_t(descriptor) + reserve >= limit.rlim_cur
    }

    /// Whether there are too few free descriptors for another connection at the moment.
    ///
    /// After a failed connection this may be `false` again, because that connection has closed its own descriptors.
    package static var isShort: Bool {
        var opened: [FileDescriptorBox] = []
        for _ in 0..<needed {
            guard let box = FileDescriptorBox() else { return true }
            opened.append(box)
        }
        return false
    }
}

/// A descriptor that serves only as a placeholder. Releasing the last reference closes it.
private final class FileDescriptorBox {
    private let descriptor: CInt

    init?() {
        descriptor = eventfd(0, O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }
}

/// The identity of a file or directory: its device and inode number. For the same file, a path and an open descriptor
/// yield equal identities.
package struct Inode: Hashable, Sendable {
    private let device: dev_t
    private let number: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        number = status.st_ino
    }

    /// Reads the identity of the file at a path. Follows symbolic links.
    ///
    /// - Throws: ``SystemError`` of `stat`.
    package init(at path: String) throws(SystemError) {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        self.init(status)
    }

    /// Reads the identity of an open file.
    ///
    /// - Throws: ``SystemError`` of `fstat`.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = stat()
        try systemCall("fstat") { fstat(descriptor, &status) }
        self.init(status)
    }
}
