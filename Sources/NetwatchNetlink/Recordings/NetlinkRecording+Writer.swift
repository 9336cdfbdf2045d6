internal import Glibc
package import NetwatchEventLoop

extension NetlinkRecording {
    /// A writer of a recording. The file is a complete recording at any time, even if the process is killed or the disk
    /// is full.
    package struct Writer: ~Copyable {
        private let file: FileDescriptor
        private var size = 0

        /// Creates the file and writes its header. Only this user gets permissions, because notifications contain
        /// addresses and routes.
        ///
        /// - Parameters:
        ///   - path: The path of the file, which can be any bytes.
        ///   - replacesExisting: Whether an existing regular file is emptied and used. If `false`, an existing file is
        ///     an error.
        /// - Throws: ``SystemError`` of `open` (`EEXIST`), or of writing the header.
        package static func creating(
            _ path: UnsafePointer<CChar>,
            replacesExisting: Bool
        ) throws(SystemError) -> Writer {
            let file = replacesExisting ? try emptied(path) : try made(path)
            var writer = Writer(file: file)
            try writer.write(NetlinkRecording.header)
            return writer
        }

        private init(file: consuming FileDescriptor) {
            self.file = file
        }

        private static func made(_ path: UnsafePointer<CChar>) throws(SystemError) -> FileDescriptor {
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
            return FileDescriptor(owning: try systemCall("open") { open(path, flags, 0o600) })
        }

        /// Opens a file, checks that it is a regular file, and then empties it. So the permissions of a device or pipe
        /// are not changed, and a pipe does not block.
        private static func emptied(_ path: UnsafePointer<CChar>) throws(SystemError) -> FileDescriptor {
            let flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC
            let file = FileDescriptor(owning: try systemCall("open") { open(path, flags, 0o600) })
            let descriptor = file.rawValue
            var status = stat()
            try systemCall("fstat") { fstat(descriptor, &status) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(call: "open", errno: EINVAL) }
            try systemCall("fchmod") { fchmod(descriptor, 0o600) }
            try systemCall("ftruncate") { ftruncate(descriptor, 0) }
            return file
        }

        /// Appends a record. After an error, the file ends with the previous record.
        ///
        /// - Throws: ``SystemError`` of `write`, with `ENOSPC`, `EDQUOT`, `EFBIG` or `EIO`.
        package mutating func add(_ record: Record) throws(SystemError) {
            try write(record.bytes)
        }

        private mutating func write(_ bytes: [UInt8]) throws(SystemError) {
            do {
                try writeAll(bytes)
            } catch {
                ftruncate(file.rawValue, off_t(size))
                throw error
            }
            size += bytes.count
        }

        private func writeAll(_ bytes: [UInt8]) throws(SystemError) {
            let descriptor = file.rawValue
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = try systemCall("write") {
                    rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                }
                rest = rest.dropFirst(count)
            }
        }
    }

    fileprivate static var header: [UInt8] {
        magic + version.littleEndianBytes + UInt32(0).littleEndianBytes
    }
}

extension NetlinkRecording.Record {
    /// The bytes of the record in the file format.
    var bytes: [UInt8] {
        let (kind, body): (UInt32, [UInt8]) =
            switch content {
            case .datagram(let bytes): (1, bytes)
            case .overrun: (2, [])
            case .initialState(let bytes): (3, bytes)
            }
        var bytes = kind.littleEndianBytes + UInt32(body.count).littleEndianBytes
        bytes += monotonic.littleEndianBytes + wall.littleEndianBytes
        return bytes + body
    }
}

extension FixedWidthInteger {
    fileprivate var littleEndianBytes: [UInt8] {
        withUnsafeBytes(of: littleEndian) { Array($0) }
    }
}
