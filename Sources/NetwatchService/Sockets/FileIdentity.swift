internal import Glibc
internal import NetwatchEventLoop

/// The identity of the file at a path. Symbolic links are not followed.
struct FileIdentity: Hashable {
    private let device: dev_t
    private let inode: ino_t
    let isSocket: Bool

    /// Reads the identity; `nil` if the file does not exist.
    ///
    /// - Throws: ``SystemError`` of `lstat`.
    init?(of path: String) throws(SystemError) {
        var status = stat()
        do throws(SystemError) {
            try systemCall("lstat \(path)") { lstat(path, &status) }
        } catch {
            guard error.errno == ENOENT else { throw error }
            return nil
        }
        device = status.st_dev
        inode = status.st_ino
        isSocket = status.st_mode & S_IFMT == S_IFSOCK
    }
}
