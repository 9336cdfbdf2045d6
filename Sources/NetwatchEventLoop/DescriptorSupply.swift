internal import CNetwatchLinux
internal import Glibc

/// Checks whether this process can open more descriptors.
package enum DescriptorSupply {
    /// The number of descriptors for one connection: its socket, a certificate file, and two for a name lookup.
    private static let needed = 4

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
