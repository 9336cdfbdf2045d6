internal import Glibc

enum FileSystem {
    struct Space {
        /// The bytes that an unprivileged process may still write.
        let free: Int64
        let total: Int64

        /// Creates the value from the result of statvfs(3) or fstatvfs(3). Sizes are clamped, because a file system may
        /// report anything.
        init(_ status: statvfs) {
            free = Self.bytes(status.f_bavail, status)
            total = Self.bytes(status.f_blocks, status)
        }

        private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
            let (bytes, overflows) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            return overflows ? .max : Int64(clamping: bytes)
        }

        /// Returns the number of bytes to keep free: `wanted`, but at most a tenth of the file system, or `minimum` if
        /// that is more.
        func reserve(_ wanted: Int64, minimum: Int64) -> Int64 { min(wanted, max(total / 10, minimum)) }
    }

    /// Returns the space at a path, as reported by statvfs(3); `nil` when the call fails.
    static func space(at path: String) -> Space? {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Space(status) : nil
    }

    /// Returns the size of a file in bytes; 0 when the file does not exist.
    static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
