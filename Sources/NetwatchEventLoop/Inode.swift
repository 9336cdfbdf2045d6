internal import Glibc

/// Which file or directory something is: device and number, the same for an open descriptor and for a path.
package struct Inode: Hashable, Sendable {
    private let device: dev_t
    private let number: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        number = status.st_ino
    }

    /// What a path leads to, symbolic links followed.
    ///
    /// - Throws: ``SystemError`` of `stat`.
    package init(at path: String) throws(SystemError) {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        self.init(status)
    }

    /// What a descriptor is open on.
    ///
    /// - Throws: ``SystemError`` of `fstat`.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = stat()
        try systemCall("fstat") { fstat(descriptor, &status) }
        self.init(status)
    }
}
