internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue

/// Reads a body once, from the beginning to the end. Reads block a thread, but not the caller's.
final class BodyReader: Sendable {
    /// The path for functions that take a string. If the name of the file is not UTF-8, this is the path of the open
    /// descriptor (`proc(5)`), which is valid while the reader exists.
    let path: String
    private let file: FileDescriptor
    private let name: String

    private init(_ file: consuming FileDescriptor, path: String? = nil, name: String) {
        let descriptor = file.rawValue
        self.path = path ?? "/proc/self/fd/\(descriptor)"
        self.file = file
        self.name = name
    }

    /// Opens a regular file with the permissions of this process.
    ///
    /// - Parameter limit: The maximum number of bytes.
    /// - Throws: A usage error that names the file and the reason.
    static func opening(
        _ path: ArgumentBytes,
        limit: Int64 = QueueRequest.maximumBodyBytes
    ) throws(CommandError) -> BodyReader {
        guard !path.bytes.isEmpty else { throw InputFile.emptyName }
        // Without `O_NONBLOCK`, opening a pipe would wait for a writer.
        let descriptor = open(path.cString, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(path, errnoDescription(errno)) }
        let file = FileDescriptor(owning: descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(path, errnoDescription(errno)) }
        let kind = status.st_mode & S_IFMT
        guard kind != S_IFDIR else { throw unreadable(path, "it is a directory") }
        guard kind == S_IFREG else {
            throw unreadable(path, "it is not a regular file").with(
                hint:
                    "to read from a pipe, redirect it to standard input and give `-` as the file (`@-` for `-d` "
                    + "and `--json`)"
            )
        }
        guard status.st_size <= limit else {
            throw CommandError(
                .usage,
                "`\(path)` has \(status.st_size) bytes; at most \(limit) are accepted"
            )
        }
        return BodyReader(file, path: path.text, name: "`\(path)`")
    }

    static func standardInput() throws(CommandError) -> BodyReader {
        try StandardInput.requireReadable()
        let descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw StandardInput.unreadable(errno) }
        return BodyReader(FileDescriptor(owning: descriptor), name: "standard input")
    }

    /// Reads the next bytes. Returns fewer than `count` only at the end.
    func read(_ count: Int) async throws(CommandError) -> Data {
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: self.readWaiting(count)) }
        }
        do {
            return try result.get()
        } catch {
            throw CommandError(.usage, "could not read \(name): \(errnoDescription(error.errno))")
        }
    }

    private func readWaiting(_ count: Int) -> Result<Data, SystemError> {
        var data = Data(count: count)
        var filled = 0
        while filled < count {
            let read = data.withUnsafeMutableBytes {
                Glibc.read(file.rawValue, $0.baseAddress! + filled, count - filled)
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { return .failure(SystemError(call: "read", errno: errno)) }
            if read == 0 { break }
            filled += read
        }
        return .success(data.prefix(filled))
    }

    private static func unreadable(_ path: ArgumentBytes, _ reason: String) -> CommandError {
        CommandError(.usage, "could not read `\(path)`: \(reason)")
    }
}
