internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Reads credential files: only regular files, and only up to a size limit.
enum CredentialFile {
    /// 1 MiB is much larger than any certificate or key, and enough for a bundle of hundreds.
    static let limit = 1 << 20
    /// The largest revocation lists in public use have about 10 MB.
    static let revocationListLimit = 64 << 20
    private static let chunkSize = 64 * 1024

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
        // O_NONBLOCK: opening a FIFO must not block until it has a writer.
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

    /// Reads to the end of the file, regardless of the size that `fstat` reported.
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
