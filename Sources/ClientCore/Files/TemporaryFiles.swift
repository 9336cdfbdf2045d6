package import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The temporary files for encoded forms, and for downloads without a path from the program.
///
/// Other users can write to the temporary directory (`TMPDIR`, by default `/tmp`). The files are therefore in a
/// subdirectory that only this user can access. Their names contain 128 random bits.
///
/// A process that is killed cannot remove its files. A process of this user that starts to use the directory afterwards
/// removes them, except files that the program has received: complete downloads, and partial ones with resume data.
enum TemporaryFiles {
    private static let prefix = "netwatch-"
    private static let suffix = ".partial"
    /// The directories from which this process has removed abandoned files.
    private static let swept = Lock<Set<String>>([])

    /// Creates a new file with ``PartialFile/isPrivate``.
    ///
    /// - Parameters:
    ///   - parent: The temporary directory.
    ///   - make: Creates the file at a path. Tests replace it.
    static func newFile(
        in parent: String = temporaryDirectory,
        _ make: (String) throws(PartialFile.Failure) -> PartialFile = PartialFile.creating
    ) throws(PartialFile.Failure) -> PartialFile {
        let file = try made(in: parent, make)
        file.isPrivate = true
        return file
    }

    private static func made(
        in parent: String,
        _ make: (String) throws(PartialFile.Failure) -> PartialFile
    ) throws(PartialFile.Failure) -> PartialFile {
        // Retry: a program that cleans the temporary directory may remove the subdirectory, while it is empty, between
        // `path(in:)` and `make`.
        for _ in 0..<4 {
            do throws(PartialFile.Failure) {
                return try make(try path(in: parent))
            } catch {
                guard case .system(let error) = error, error.errno == ENOENT else { throw error }
            }
        }
        return try make(try path(in: parent))
    }

    private static func path(in parent: String) throws(PartialFile.Failure) -> String {
        do throws(SystemError) { return try newPath(in: parent) } catch { throw .system(error) }
    }

    /// Returns a path for a new file.
    private static func newPath(in parent: String) throws(SystemError) -> String {
        var generator = SystemRandomNumberGenerator()
        let number = (0..<2).map { _ in hexadecimal(generator.next()) }.joined()
        return "\(try directory(in: parent))/\(prefix)\(number)\(suffix)"
    }

    /// Returns whether a file name has the pattern of the names from ``newPath(in:)``.
    static func isName(_ name: Substring) -> Bool {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return false }
        let number = name.dropFirst(prefix.count).dropLast(suffix.count)
        return number.utf8.count == 32 && number.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Returns the subdirectory that all processes of this user share. If its name is already used for a file, or for a
    /// directory that other users can access, creates a directory with a unique name instead.
    private static func directory(in parent: String) throws(SystemError) -> String {
        let path = "\(parent)/\(prefix)downloads-\(geteuid())"
        if mkdir(path, 0o700) == 0 || isPrivate(path) {
            if swept.withLock({ $0.insert(path).inserted }) { removeAbandonedFiles(in: path) }
            return path
        }
        var template = Array("\(path)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw SystemError(call: "mkdtemp \(path)-XXXXXX", errno: errno)
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func removeAbandonedFiles(in directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where isName(name[...]) { PartialFile.removeIfAbandoned("\(directory)/\(name)") }
    }

    static var temporaryDirectory: String {
        let path = NSTemporaryDirectory()
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    private static func isPrivate(_ path: String) -> Bool {
        var status = stat()
        // lstat(2): a symbolic link could lead to another user's directory.
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
            && status.st_uid == geteuid() && status.st_mode & 0o077 == 0
    }
}

/// A new file that is deleted when the last reference to this object is released, or earlier by ``remove()``. If the
/// process is killed, a later process deletes the file; see ``TemporaryFiles``.
package final class TemporaryFile: Sendable {
    package let url: URL
    /// Holds the lock that shows that this process is running.
    private let file: PartialFile

    /// Creates an empty file.
    ///
    /// - Parameter parent: The temporary directory.
    init(in parent: String) throws(PartialFile.Failure) {
        let new = try TemporaryFiles.newFile(in: parent)
        url = URL(fileURLWithPath: new.path)
        file = consume new
    }

    deinit { remove() }

    func remove() {
        unlink(url.path)
    }
}

extension URL {
    /// Returns the absolute path of a file URL.
    ///
    /// - Throws: `EINVAL` if the URL is not a file URL, or if its path contains a NUL byte (`%00`). Foundation's `path`
    ///   would keep the text `%00`, which names another file.
    func localPath() throws(SystemError) -> String {
        guard isFileURL, !path(percentEncoded: true).contains("%00"), !path.isEmpty else {
            throw SystemError(call: "open \(textWithoutSecrets)", errno: EINVAL)
        }
        return URL(fileURLWithPath: path).path
    }
}
