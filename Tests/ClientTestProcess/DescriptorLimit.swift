internal import Glibc
internal import NetwatchEventLoop

/// A lowered limit of this process's open descriptors (`RLIMIT_NOFILE`).
struct DescriptorLimit {
    private let number: rlim_t

    /// Lowers the limit so that only `spare` more descriptors can be opened.
    static func leaving(_ spare: Int) throws -> DescriptorLimit {
        var limit = rlimit()
        try systemCall("getrlimit") { getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
        // The kernel assigns the lowest free number, so the duplicate has the number of the next descriptor.
        let next = try systemCall("dup") { dup(STDOUT_FILENO) }
        close(next)
        try set(rlim_t(Int(next) + spare))
        return DescriptorLimit(number: limit.rlim_cur)
    }

    func restore() throws { try Self.set(number) }

    private static func set(_ number: rlim_t) throws {
        var limit = rlimit()
        try systemCall("getrlimit") { getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
        limit.rlim_cur = number
        try systemCall("setrlimit") { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
    }
}
