internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The file that stores a resume record next to its partial file.
///
/// The file is replaced atomically: a reader finds the old record or the new one, even after a power failure. Only the
/// owner of the partial file's lock writes the record.
struct ResumeRecordFile: Sendable {
    let path: String

    /// The record file of a partial file: `<path>.resume`.
    init(of partialFile: String) {
        path = partialFile + ".resume"
    }

    /// Returns the record; `nil` if the file is missing, is invalid, or belongs to another user.
    func read() -> ResumeRecord? {
        guard
            let file = try? systemCall(
                "open \(path)",
                { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
            )
        else { return nil }
        let descriptor = FileDescriptor(owning: file)
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid()
        else { return nil }
        return Self.contents(of: descriptor).flatMap { try? ResumeRecord(data: $0) }
    }

    private static func contents(of descriptor: borrowing FileDescriptor) -> Data? {
        // The buffer has one byte more than the limit, so that a longer record is rejected instead of truncated.
        var bytes = [UInt8](repeating: 0, count: ResumeRecord.maximumBytes + 1)
        let file = descriptor.rawValue
        var count = 0
        while count < bytes.count {
            let capacity = bytes.count - count
            let got = try? bytes.withUnsafeMutableBytes { bytes in
                try systemCall("read") { Glibc.read(file, bytes.baseAddress! + count, capacity) }
            }
            guard let got else { return nil }
            if got == 0 { break }
            count += got
        }
        return Data(bytes[..<count])
    }

    /// Replaces the record durably. If the new record is too long to be read again, the file is removed instead.
    func write(_ record: ResumeRecord) throws(SystemError) {
        guard let data = record.data else { return try remove() }
        try PrivateFile.replace(path, with: Array(data), isDurable: true)
    }

    /// Removes the record durably: it does not reappear after a power failure.
    func remove() throws(SystemError) {
        try Directory.removeFile(path)
        try Directory.syncParent(of: path)
    }
}
