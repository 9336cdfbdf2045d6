internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

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
