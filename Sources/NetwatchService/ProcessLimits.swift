internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// What the service changes of its own process before it starts.
enum ProcessLimits {
    /// Raises the soft limit of descriptors to the hard one (`RLIMIT_NOFILE` of getrlimit(2)). A service manager that
    /// forbids it has set both already.
    ///
    /// - Returns: How many descriptors the process may have.
    static func raiseDescriptors() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return defaultDescriptors }
        var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
        if limit.rlim_cur < limit.rlim_max, setrlimit(resource, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// The kernel's default of the soft limit.
    private static let defaultDescriptors = 1024

    /// Makes the C library get large blocks from the kernel and give them back as soon as they are freed. Otherwise it
    /// raises the size of what it takes for large with every such block that is freed, up to 32 MiB, and keeps the rest.
    static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, largeBlockBytes)
    }

    /// The C library's own value at the start.
    private static let largeBlockBytes: CInt = 128 * 1024
}
