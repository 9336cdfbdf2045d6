internal import Glibc
internal import NetwatchEventLoop

/// The limit of open descriptors of this process (`RLIMIT_NOFILE`).
struct DescriptorLimit {
    private let number: rlim_t

    /// Lowers the limit so that only `spare` more descriptors can be opened.
    static func leaving(_ spare: Int) throws -> DescriptorLimit {
        var limit = rlimit()
        try systemCall("getrlimit") { getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
        // The kernel assigns the lowest free number, so this is the next one.
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
