internal import CNetwatchLinux
internal import Glibc

/// Whether this process may open more descriptors.
package enum DescriptorSupply {
    /// How many a connection needs at a time: its socket, a file of certificates, and two for a name lookup.
    private static let needed = 4

    /// Whether there are too few for another connection at this moment. The shortage that a failure came from may have
    /// passed: the failed connection has returned its own descriptors.
    package static var isShort: Bool {
        var opened: [FileDescriptorBox] = []
        for _ in 0..<needed {
            guard let box = FileDescriptorBox() else { return true }
            opened.append(box)
        }
        return false
    }
}

/// A descriptor of nothing in particular, closed with its last reference.
private final class FileDescriptorBox {
    private let descriptor: CInt

    init?() {
        descriptor = eventfd(0, O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }
}
