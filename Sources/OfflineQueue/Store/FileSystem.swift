internal import Glibc

enum FileSystem {
    /// What an ordinary user may still write, by statvfs(3); `nil` when it cannot be told.
    static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let (bytes, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(
            by: UInt64(status.f_frsize)
        )
        return overflows ? .max : Int64(clamping: bytes)
    }

    /// How many bytes a file has; 0 when there is none.
    static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
