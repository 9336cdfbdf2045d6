internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Moves a finished file to its destination atomically. The destination never contains only a part of the file. An
/// existing file there stays until the new one replaces it.
///
/// The file has the permissions 0600 until it is moved. At its destination, it has the permissions of a newly created
/// file: 0666 without the bits of the umask.
enum DownloadedFile {
    /// Moves a file.
    ///
    /// - Parameters:
    ///   - source: The path of the file. If the move fails, the file stays there.
    ///   - open: A second path to the file, through its open descriptor (`/proc/self/fd/N`). The file is copied from
    ///     there if `source` was deleted, for example by a program that cleans the temporary directory. Default:
    ///     `nil`, a deleted `source` is an error.
    ///   - destination: A file URL.
    ///   - options: Whether existing files are replaced and directories are created.
    ///   - isDurable: Whether to wait until the new name is on disk.
    /// - Throws: ``SystemError``.
    static func move(
        _ source: String,
        open: String? = nil,
        to destination: URL,
        options: DownloadOptions,
        isDurable: Bool
    ) throws(SystemError) {
        let path = try destination.localPath()
        if options.contains(.createIntermediateDirectories) { try makeDirectory(Directory.parent(of: path)) }
        if !isSame(source, path) {
            do {
                try put(source, path, options)
            } catch let error where error.errno == EXDEV || error.errno == ENOENT && !exists(source) {
                guard let readable = exists(source) ? source : open else { throw error }
                try copy(readable, path, options)
                if exists(source) { try Directory.removeFile(source) }
            }
        }
        // Errors are ignored: the file has already been moved, and some file systems have no permissions.
        _ = chmod(path, 0o666 & ~umask)
        if isDurable { try Directory.sync(Directory.parent(of: path)) }
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Returns whether both paths are the same file. A partial file can be at its destination from the start.
    private static func isSame(_ source: String, _ path: String) -> Bool {
        var one = stat()
        var other = stat()
        return lstat(source, &one) == 0 && lstat(path, &other) == 0
            && one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_nlink == 1
    }

    private static func put(
        _ source: String,
        _ path: String,
        _ options: DownloadOptions
    ) throws(SystemError) {
        if options.contains(.removePreviousFile) {
            try systemCall("rename to \(path)") { rename(source, path) }
        } else {
            try putWhereNothingIs(source, path)
        }
    }

    /// Moves a file to a path that must not exist. `rename(2)` would replace a file that another process creates at
    /// the same time, so this uses `link(2)`.
    private static func putWhereNothingIs(_ source: String, _ path: String) throws(SystemError) {
        do {
            try systemCall("link to \(path)") { link(source, path) }
            try Directory.removeFile(source)
        } catch {
            guard [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(error.errno) else { throw error }
            try claim(path)
            try systemCall("rename to \(path)") { rename(source, path) }
        }
    }

    /// Reserves a name with an empty file. Used for file systems without hard links.
    private static func claim(_ path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        _ = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
    }

    /// Copies a file to the destination's directory under a hidden name, then moves the copy. Used if the source is on
    /// another file system.
    private static func copy(
        _ source: String,
        _ path: String,
        _ options: DownloadOptions
    ) throws(SystemError) {
        var generator = SystemRandomNumberGenerator()
        let name = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
        let copy = "\(Directory.parent(of: path))/.netwatch-\(name)"
        do {
            try writeCopy(of: source, to: copy)
            try put(copy, path, options)
        } catch {
            try? Directory.removeFile(copy)
            throw error
        }
    }

    private static func writeCopy(of source: String, to copy: String) throws(SystemError) {
        let from = try FileDescriptor.opening(source)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        let to = FileDescriptor(owning: try systemCall("open \(copy)") { open(copy, flags, 0o600) })
        let (reading, writing) = (from.rawValue, to.rawValue)
        var buffer = [UInt8](repeating: 0, count: 256 * 1024)
        while true {
            let count = try systemCall("read \(source)") { read(reading, &buffer, buffer.count) }
            if count == 0 { break }
            var rest = buffer[..<count]
            while !rest.isEmpty {
                let written = try systemCall("write \(copy)") {
                    rest.withUnsafeBytes { write(writing, $0.baseAddress, $0.count) }
                }
                rest = rest.dropFirst(written)
            }
        }
        try systemCall("fsync \(copy)") { fsync(writing) }
    }

    /// Creates a directory and its missing parents, with the default permissions.
    private static func makeDirectory(_ path: String) throws(SystemError) {
        if mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        let error = errno
        let parent = Directory.parent(of: path)
        guard error == ENOENT, parent != path else {
            throw SystemError(call: "mkdir \(path)", errno: error)
        }
        try makeDirectory(parent)
        // Another process may have created the directory in the meantime.
        if mkdir(path, 0o777) != 0, errno != EEXIST { throw SystemError(call: "mkdir \(path)", errno: errno) }
    }

    /// The umask of the process, read from `/proc`. `umask(2)` cannot return it without changing it for all threads.
    private static var umask: mode_t {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("Umask:") }
        return line?.split(separator: "\t").last.flatMap { mode_t($0, radix: 8) } ?? 0o077
    }
}
