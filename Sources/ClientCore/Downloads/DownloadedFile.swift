internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Puts a finished file in its place, in one step: nobody sees a part of it there, and nothing that was there
/// is lost before it is replaced.
///
/// At its destination the file has the permissions that a program's new files have, 0666 without the umask;
/// until then it has 0600.
enum DownloadedFile {
    /// - Parameters:
    ///   - source: The file. It stays when this fails.
    ///   - open: A path of the same file that needs no name (`/proc/self/fd/N`), by which it is copied when somebody
    ///     has removed it: who tidies up a temporary directory does not ask. Default `nil`: then that is an error.
    ///   - destination: Its place, a file URL.
    ///   - options: What may be done to make room.
    ///   - isDurable: Whether to wait until the new name is on the disk.
    static func move(
        _ source: String,
        open: String? = nil,
        to destination: URL,
        options: DownloadOptions,
        isDurable: Bool
    ) throws(SystemError) {
        let path = try destination.localPath()
        if options.contains(.createIntermediateDirectories) { try makeDirectory(directoryPath(of: path)) }
        if !isSame(source, path) {
            do {
                try put(source, path, options)
            } catch let error where error.errno == EXDEV || error.errno == ENOENT && !exists(source) {
                guard let readable = exists(source) ? source : open else { throw error }
                try copy(readable, path, options)
                if exists(source) { try removeFile(source) }
            }
        }
        // A file system without permissions refuses; the file is in its place all the same.
        _ = chmod(path, 0o666 & ~umask)
        if isDurable { try Directory.sync(directoryPath(of: path)) }
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// A download may be kept at its destination from the start.
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

    /// `rename(2)` would replace what somebody puts there in this moment; `link(2)` does not.
    private static func putWhereNothingIs(_ source: String, _ path: String) throws(SystemError) {
        do {
            try systemCall("link to \(path)") { link(source, path) }
            try removeFile(source)
        } catch {
            guard [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(error.errno) else { throw error }
            try claim(path)
            try systemCall("rename to \(path)") { rename(source, path) }
        }
    }

    /// Where there are no links, an empty file takes the name.
    private static func claim(_ path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        _ = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
    }

    /// To another file system, for example: first everything under a hidden name, then into its place.
    private static func copy(
        _ source: String,
        _ path: String,
        _ options: DownloadOptions
    ) throws(SystemError) {
        var generator = SystemRandomNumberGenerator()
        let name = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
        let copy = "\(directoryPath(of: path))/.netwatch-\(name)"
        do {
            try writeCopy(of: source, to: copy)
            try put(copy, path, options)
        } catch {
            try? removeFile(copy)
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

    /// Makes a directory and what is missing above it, with the permissions that new directories have.
    private static func makeDirectory(_ path: String) throws(SystemError) {
        if mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        let error = errno
        let parent = directoryPath(of: path)
        guard error == ENOENT, parent != path else {
            throw SystemError(call: "mkdir \(path)", errno: error)
        }
        try makeDirectory(parent)
        // Somebody else may have made it meanwhile.
        if mkdir(path, 0o777) != 0, errno != EEXIST { throw SystemError(call: "mkdir \(path)", errno: errno) }
    }

    /// `umask(2)` tells it only by changing it, for all threads; the kernel also writes it here.
    private static var umask: mode_t {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("Umask:") }
        return line?.split(separator: "\t").last.flatMap { mode_t($0, radix: 8) } ?? 0o077
    }
}
