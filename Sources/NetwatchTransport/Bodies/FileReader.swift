internal import Glibc
package import NetwatchEventLoop

/// A reader of a regular file.
package final class FileReader: BlockingReader {
    /// The file's length in bytes when it was opened.
    package let length: Int64
    private let path: String
    private let file: FileDescriptor

    /// Opens a regular file.
    ///
    /// - Throws: ``SystemError`` of `open` or `fstat`. The error is `EISDIR` for a directory. It is `EINVAL` for pipes,
    ///   devices and other special files, because their length does not say how much can be read.
    package init(path: String) throws(SystemError) {
        guard !path.utf8.contains(0) else { throw SystemError(call: "open", errno: EINVAL) }
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags) })
        let descriptor = file.rawValue
        var status = stat()
        try systemCall("fstat \(path)") { fstat(descriptor, &status) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else {
            throw SystemError(call: "open \(path)", errno: kind == S_IFDIR ? EISDIR : EINVAL)
        }
        length = Int64(status.st_size)
        self.path = path
        self.file = file
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        let descriptor = file.rawValue
        return try systemCall("read \(path)") { Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
    }

    /// Whether the file can be read from any position, which a pipe cannot.
    package var isRewindable: Bool { lseek(file.rawValue, 0, SEEK_CUR) >= 0 }

    package func rewind() -> Bool {
        lseek(file.rawValue, 0, SEEK_SET) == 0
    }
}
