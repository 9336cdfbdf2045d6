internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Small files of mode 0600 that are replaced as a whole. A reader finds the old contents or the new ones.
enum PrivateFile {
    /// Replaces a file, or creates it. If this fails, the old file is unchanged.
    ///
    /// The caller must exclude other writers: the new contents are first written to the file `<path>.new`.
    ///
    /// - Parameter isDurable: Whether the new contents survive a power failure from the return of this function on.
    static func replace(_ path: String, with data: Data, isDurable: Bool) throws(SystemError) {
        let new = path + ".new"
        try removeFile(new)
        do throws(SystemError) {
            try create(new, data, isDurable: isDurable)
            try systemCall("rename \(new)") { rename(new, path) }
        } catch {
            unlink(new)
            throw error
        }
        if isDurable { try Directory.sync(directoryPath(of: path)) }
    }

    private static func create(_ path: String, _ data: Data, isDurable: Bool) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
        let descriptor = file.rawValue
        try systemCall("fchmod \(path)") { fchmod(descriptor, 0o600) }
        var rest = Array(data)[...]
        while !rest.isEmpty {
            let count = try systemCall("write \(path)") {
                rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            }
            rest = rest.dropFirst(count)
        }
        if isDurable { try systemCall("fsync \(path)") { fsync(descriptor) } }
    }
}
