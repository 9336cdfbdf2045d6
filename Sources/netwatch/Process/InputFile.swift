internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Reads files that are named by arguments.
enum InputFile {
    /// Reads a whole file of at most `limit` bytes; `-` is standard input.
    ///
    /// - Throws: A usage error that names the file and the reason.
    static func read(_ path: ArgumentBytes, limit: Int) throws(CommandError) -> Data {
        if path == .standardInput {
            try StandardInput.requireReadable()
            return try contents(of: .standardInput, "standard input", limit)
        }
        guard !path.bytes.isEmpty else { throw emptyName }
        let descriptor = open(path.cString, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandError(.usage, "could not read `\(path)`: \(errnoDescription(errno))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard !isDirectory(descriptor) else {
            throw CommandError(.usage, "could not read `\(path)`: it is a directory")
        }
        return try contents(of: handle, "`\(path)`", limit)
    }

    /// The error for a file without a name.
    static let emptyName = CommandError(.usage, "the name of a file must not be empty")

    private static func isDirectory(_ descriptor: CInt) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Reads at most one byte more than `limit`, so that an endless file is detected without reading all of it.
    private static func contents(
        of handle: FileHandle,
        _ name: String,
        _ limit: Int
    ) throws(CommandError) -> Data {
        let data: Data
        do {
            data = try handle.read(upToCount: limit + 1) ?? Data()
        } catch {
            throw CommandError(.usage, "could not read \(name): \(error.localizedDescription)")
        }
        guard data.count <= limit else {
            throw CommandError(.usage, "\(name) is too long; at most \(limit) bytes are accepted")
        }
        return data
    }
}

/// Standard input, which the caller may have closed.
enum StandardInput {
    /// Checks that standard input can be read, before the command does anything. A closed standard input must not be
    /// taken for an empty body.
    ///
    /// - Throws: A usage error with the reason.
    static func requireReadable() throws(CommandError) {
        // A read of zero bytes fails like any other read, and consumes nothing.
        guard read(STDIN_FILENO, nil, 0) == -1 else { return }
        throw unreadable(errno)
    }

    /// Returns the error for a failed read.
    static func unreadable(_ error: CInt) -> CommandError {
        let reason = error == EBADF ? "it is closed, or not open for reading" : errnoDescription(error)
        return CommandError(.usage, "could not read standard input: \(reason)")
    }
}
