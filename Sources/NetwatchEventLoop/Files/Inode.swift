internal import Glibc

/// The identity of a file or directory: its device and inode number. For the same file, a path and an open descriptor
/// yield equal identities.
package struct Inode: Hashable, Sendable {
    private let device: dev_t
    private let number: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        number = status.st_ino
    }

    /// Reads the identity of the file at a path. Follows symbolic links.
    ///
    /// - Throws: ``SystemError`` of `stat`.
    package init(at path: String) throws(SystemError) {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        self.init(status)
    }

    /// Reads the identity of an open file.
    ///
    /// - Throws: ``SystemError`` of `fstat`.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = stat()
        try systemCall("fstat") { fstat(descriptor, &status) }
        self.init(status)
    }
}
