internal import Glibc

/// The identity of a file or directory: device and inode number. It is the same for a path and for an open
/// descriptor.
package struct Inode: Hashable, Sendable {
    private let device: dev_t
    private let number: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        number = status.st_ino
    }

    /// Identifies the file at a path, following symbolic links.
    ///
    /// - Throws: ``SystemError`` of `stat`.
    package init(at path: String) throws(SystemError) {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        self.init(status)
    }

    /// Identifies the file behind a descriptor.
    ///
    /// - Throws: ``SystemError`` of `fstat`.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = stat()
        try systemCall("fstat") { fstat(descriptor, &status) }
        self.init(status)
    }
}
