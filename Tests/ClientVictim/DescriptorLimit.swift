internal import Glibc
internal import NetwatchEventLoop

/// How many descriptors this process may have.
struct DescriptorLimit {
    private let number: rlim_t

    /// Leaves room for so many more than are open.
    static func leaving(_ spare: Int) throws -> DescriptorLimit {
        var limit = rlimit()
        try systemCall("getrlimit") { getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
        // The lowest number that is free is the next to be given.
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
