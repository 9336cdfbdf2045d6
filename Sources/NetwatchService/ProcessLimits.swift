internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// The process-wide settings that the service changes before it starts.
enum ProcessLimits {
    /// Raises the soft limit of descriptors to the hard limit (`RLIMIT_NOFILE` of getrlimit(2)).
    ///
    /// If a system call filter forbids that, the soft limit stays. In the systemd unit this is harmless, because
    /// `LimitNOFILE=` has already set both limits to the same value.
    ///
    /// - Returns: The number of descriptors that the process may open.
    static func raiseDescriptors() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return defaultDescriptors }
        var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
        if limit.rlim_cur < limit.rlim_max, setrlimit(resource, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// The kernel's default soft limit, for the case that the limit cannot be read.
    private static let defaultDescriptors = 1024

    /// Makes the C library allocate large blocks directly from the kernel and return them as soon as they are freed.
    ///
    /// By default the C library raises the threshold for large blocks, up to 32 MiB, when a large block is freed. It
    /// keeps freed blocks that are smaller than the threshold.
    static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, largeBlockBytes)
    }

    /// Prevents core dumps (`PR_SET_DUMPABLE` of prctl(2)). They would contain the requests in flight as plaintext. The
    /// keys themselves are in memory that is never dumped.
    static func forbidCoreDumps() {
        _ = netwatch_forbid_core_dumps()
    }

    /// The smallest large block, in bytes: the C library's initial threshold. Setting it explicitly disables the
    /// automatic adjustment.
    private static let largeBlockBytes: CInt = 128 * 1024
}
