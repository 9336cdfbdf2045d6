internal import Glibc

enum FileSystem {
    struct Space {
        /// What an ordinary user may still write, in bytes.
        let free: Int64
        let total: Int64

        /// As statvfs(3) and fstatvfs(3) tell it. A file system may claim anything.
        init(_ status: statvfs) {
            free = Self.bytes(status.f_bavail, status)
            total = Self.bytes(status.f_blocks, status)
        }

        private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
            let (bytes, overflows) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            return overflows ? .max : Int64(clamping: bytes)
        }

        /// What is left free of it: on a small one a tenth, but room for the longest log, without which no outcome
        /// can be written.
        func reserve(_ wanted: Int64) -> Int64 { min(wanted, max(total / 10, CommitBatcher.longestLog)) }
    }

    /// By statvfs(3); `nil` when it cannot be told.
    static func space(at path: String) -> Space? {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Space(status) : nil
    }

    /// How many bytes a file has; 0 when there is none.
    static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
