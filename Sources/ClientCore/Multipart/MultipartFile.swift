internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A file that is a part of a form.
///
/// The file is read through a descriptor, because Foundation's streams on Linux do not report why they failed.
struct MultipartFile {
    private let url: URL
    /// The length in bytes when the file was added.
    let length: UInt64

    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
    init(_ url: URL) throws {
        self.url = url
        length = try OpenedFile.open(url).length
    }

    func read(into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        let reader = MultipartReader(part: url.path, length: length)
        let file = try OpenedFile.open(url)
        // A file's length is known in advance, so encoding a changed file fails before any of its bytes are written.
        guard file.length == length else { throw reader.unexpectedLength(file.length) }
        try reader.readAll({ try file.read(into: $0) }, into: sink)
    }
}

/// A regular file that is open for reading.
private struct OpenedFile: ~Copyable {
    private let descriptor: FileDescriptor
    let length: UInt64

    static func open(_ url: URL) throws -> OpenedFile {
        guard url.isFileURL, !url.path.isEmpty else { throw failure(.bodyPartURLInvalid(url: url)) }
        // Checked before opening, because opening a device can have side effects.
        try checkKind(at: url)
        let descriptor = try opened(url)
        let length = try length(of: descriptor.rawValue, url)
        return OpenedFile(descriptor: descriptor, length: length)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do {
            return try systemCall("read") {
                Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count)
            }
        } catch {
            throw Self.failure(.inputStreamReadFailed(error: error))
        }
    }

    private init(descriptor: consuming FileDescriptor, length: UInt64) {
        self.descriptor = descriptor
        self.length = length
    }

    private static func checkKind(at url: URL) throws {
        var status = stat()
        do { try systemCall("stat") { stat(url.path, &status) } } catch { throw notReachable(url, error) }
        try checkKind(status, url)
    }

    private static func checkKind(_ status: stat, _ url: URL) throws {
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: throw failure(.bodyPartFileIsDirectory(at: url))
        default: throw failure(.bodyPartFileSizeNotAvailable(at: url))
        }
    }

    private static func opened(_ url: URL) throws -> FileDescriptor {
        // O_NONBLOCK: if the path has become a FIFO in the meantime, opening it must not block.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        do {
            return FileDescriptor(owning: try systemCall("open") { Glibc.open(url.path, flags) })
        } catch {
            throw notReachable(url, error)
        }
    }

    private static func length(of descriptor: CInt, _ url: URL) throws -> UInt64 {
        var status = stat()
        do {
            try systemCall("fstat") { fstat(descriptor, &status) }
        } catch {
            throw failure(.bodyPartFileSizeQueryFailedWithError(forURL: url, error: error))
        }
        try checkKind(status, url)
        return UInt64(status.st_size)
    }

    private static func notReachable(_ url: URL, _ error: SystemError) -> AFError {
        failure(.bodyPartFileNotReachableWithError(atURL: url, error: error))
    }

    private static func failure(_ reason: AFError.MultipartEncodingFailureReason) -> AFError {
        .multipartEncodingFailed(reason: reason)
    }
}
