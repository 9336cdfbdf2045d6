internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A file for an encoded form. It is deleted unless ``finish()`` has succeeded.
struct MultipartOutput: ~Copyable {
    private let path: String
    /// The open file; -1 after it was closed.
    private var descriptor: CInt
    private var isFinished = false

    /// - Parameters:
    ///   - url: The file.
    ///   - isNew: Whether the file is created, and must not exist. If not, it must exist and be empty.
    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
    static func open(_ url: URL, isNew: Bool) throws -> MultipartOutput {
        guard url.isFileURL, !url.path.isEmpty else {
            throw AFError.multipartEncodingFailed(reason: .outputStreamURLInvalid(url: url))
        }
        // Mode 0600: a body can contain secrets, and the directory may be accessible to other users.
        let flags = O_WRONLY | O_CLOEXEC | (isNew ? O_CREAT | O_EXCL : 0)
        do {
            let descriptor = try systemCall("open") { Glibc.open(url.path, flags, 0o600) }
            return MultipartOutput(path: url.path, descriptor: descriptor)
        } catch  where error.errno == EEXIST {
            throw AFError.multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: url))
        } catch {
            throw AFError.multipartEncodingFailed(reason: .outputStreamCreationFailed(for: url))
        }
    }

    private init(path: String, descriptor: CInt) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        if descriptor >= 0 { _ = close(descriptor) }
        if !isFinished { unlink(path) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            do {
                let count = try systemCall("write") { Glibc.write(descriptor, rest.baseAddress, rest.count) }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } catch {
                throw Self.failure(error)
            }
        }
    }

    /// Closes and keeps the file. Some file systems report write errors only when a file is closed.
    mutating func finish() throws {
        let (result, error) = (close(descriptor), errno)
        descriptor = -1
        // On Linux, close(2) has closed the descriptor even if it fails with EINTR.
        guard result == 0 || error == EINTR else {
            throw Self.failure(SystemError(call: "close", errno: error))
        }
        isFinished = true
    }

    private static func failure(_ error: SystemError) -> AFError {
        .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: error))
    }
}

/// A stream that is a part of a form. It can be read once.
final class MultipartStream {
    let length: UInt64
    private let stream: InputStream
    private let name: String
    private var isConsumed = false

    init(_ stream: InputStream, length: UInt64, name: String) {
        self.stream = stream
        self.length = length
        self.name = name
    }

    func read(into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard !isConsumed else { throw Self.failure(URLError.streamExhausted) }
        isConsumed = true
        stream.open()
        defer { stream.close() }
        try MultipartReader(part: name, length: length).readAll(fill, into: sink)
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let bytes = buffer.bindMemory(to: UInt8.self)
        errno = 0
        let count = stream.read(bytes.baseAddress!, maxLength: bytes.count)
        // `streamError` traps on Linux if there is no error, so `errno` is used. The count is checked, because a
        // subclass of `InputStream` may return any number.
        guard 0...bytes.count ~= count else {
            throw Self.failure(SystemError(call: "InputStream.read", errno: errno == 0 ? EIO : errno))
        }
        return count
    }

    private static func failure(_ error: any Error) -> AFError {
        .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
    }
}
