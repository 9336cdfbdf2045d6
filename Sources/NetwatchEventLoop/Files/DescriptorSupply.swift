internal import CNetwatchLinux
internal import Glibc

/// Checks whether this process can open more descriptors.
package enum DescriptorSupply {
    /// The number of descriptors for one connection: its socket, a certificate file, and two for a name lookup.
    private static let needed = 4

    /// The number of descriptors below the process's limit that connections leave to files: those of a store, and those
    /// that libdispatch opens each second while its threads are busy. It ends the process when it cannot open them
    /// (`_dispatch_workq_monitor_pools`, `/proc/self/task/TID/stat`).
    private static let reserve: rlim_t = 8

    /// Whether a descriptor is one of the last below the process's limit (`RLIMIT_NOFILE`). The kernel always returns
    /// the lowest free number, so few others are free then.
    package static func isReserved(_ descriptor: CInt) -> Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
        return rlim_t(descriptor) + reserve >= limit.rlim_cur
    }

    /// Whether there are too few descriptors for another connection now. An earlier shortage may have passed, because
    /// the failed connection has closed its own descriptors.
    package static var isShort: Bool {
        var opened: [FileDescriptorBox] = []
        for _ in 0..<needed {
            guard let box = FileDescriptorBox() else { return true }
            opened.append(box)
        }
        return false
    }
}

/// A descriptor that is used only as a placeholder. It is closed when the last reference is released.
private final class FileDescriptorBox {
    private let descriptor: CInt

    init?() {
        descriptor = eventfd(0, O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }
}
