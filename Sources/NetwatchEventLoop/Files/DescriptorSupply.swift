internal import CNetwatchLinux
internal import Glibc

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
