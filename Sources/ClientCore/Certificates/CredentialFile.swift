internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Reads credential files: only regular files, and only up to a size limit.
enum CredentialFile {
    /// The size limit of certificates and keys in bytes. 1 MiB is enough for a file with hundreds of certificates.
    static let limit = 1 << 20
    /// The size limit of revocation lists in bytes: 64 MiB. The largest lists in public use have about 10 MB.
    static let revocationListLimit = 64 << 20
    private static let chunkSize = 64 * 1024

    /// Reads a file, up to one byte more than the limit. ``check(_:as:limit:)`` then rejects data that is too large.
    ///
    /// - Throws: ``InvalidCredential`` with ``InvalidCredential/Reason/unreadable(errno:)``.
    static func read(
        _ url: URL,
        as kind: InvalidCredential.Kind,
        limit: Int = limit
    ) throws(InvalidCredential) -> Data {
        do throws(SystemError) {
            return try read(try url.localPath(), atMost: limit + 1)
        } catch {
            throw InvalidCredential(kind, .unreadable(errno: error.errno), file: url.path)
        }
    }

    /// - Throws: ``InvalidCredential`` if the data is empty or larger than the limit.
    static func check(
        _ data: Data,
        as kind: InvalidCredential.Kind,
        limit: Int = limit
    ) throws(InvalidCredential) {
        if data.isEmpty { throw InvalidCredential(kind, .empty) }
        if data.count > limit { throw InvalidCredential(kind, .tooLarge(limit: limit)) }
    }

    private static func read(_ path: String, atMost most: Int) throws(SystemError) -> Data {
        // With O_NONBLOCK, opening a FIFO does not block until the FIFO has a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags) })
        let descriptor = file.rawValue
        var status = stat()
        try systemCall("fstat \(path)") { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            throw SystemError(call: "open \(path)", errno: isDirectory ? EISDIR : EINVAL)
        }
        return try read(descriptor, atMost: most)
    }

    /// Reads up to the end of the file or the limit. The size that `fstat` reports is not used, because a file may
    /// grow, and files in `/proc` report 0.
    private static func read(_ descriptor: CInt, atMost most: Int) throws(SystemError) -> Data {
        var data = Data()
        while data.count < most {
            var chunk = [UInt8](repeating: 0, count: min(chunkSize, most - data.count))
            let capacity = chunk.count
            let got = try systemCall("read") { Glibc.read(descriptor, &chunk, capacity) }
            if got == 0 { break }
            data += chunk[..<got]
        }
        return data
    }
}
