internal import Glibc

/// Sizes of file systems and files.
enum FileSystem {
    /// The space of a file system.
    struct Space {
        /// The number of free bytes that an unprivileged process may use.
        let free: Int64
        /// The size of the file system in bytes.
        let total: Int64

        /// Creates the value from the result of statvfs(3) or fstatvfs(3). A size beyond the range of `Int64` is
        /// clamped, because a file system may report any value.
        init(_ status: statvfs) {
            free = Self.bytes(status.f_bavail, status)
            total = Self.bytes(status.f_blocks, status)
        }

        private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
            let (bytes, overflows) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            return overflows ? .max : Int64(clamping: bytes)
        }

        /// Returns the number of bytes to keep free: `wanted`, reduced to a tenth of a small file system, but never to
        /// less than `minimum`.
        func reserve(_ wanted: Int64, minimum: Int64) -> Int64 { min(wanted, max(total / 10, minimum)) }
    }

    /// Returns the space of the file system at a path; `nil` if statvfs(3) fails.
    static func space(at path: String) -> Space? {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Space(status) : nil
    }

    /// Returns whether the file system at a path is read-only; `false` if statvfs(3) fails.
    static func isReadOnly(at path: String) -> Bool {
        var status = statvfs()
        return statvfs(path, &status) == 0 && isReadOnly(status)
    }

    /// Returns whether the result of statvfs(3) is that of a read-only file system.
    static func isReadOnly(_ status: statvfs) -> Bool { status.f_flag & UInt(ST_RDONLY) != 0 }

    /// Returns the size of a file in bytes; 0 if stat(2) fails, for example because the file does not exist.
    static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
