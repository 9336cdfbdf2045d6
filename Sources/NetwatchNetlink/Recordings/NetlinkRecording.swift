internal import Glibc
package import NetwatchEventLoop

/// The file format of a recording of notifications: a header followed by records. Numbers are little-endian.
///
/// | bytes | header | | bytes | record |
/// |---|---|---|---|---|
/// | 0–7 | `netwatch` in ASCII | | 0–3 | kind: 1 datagram, 2 notifications were lost, 3 initial state |
/// | 8–11 | version: 2 | | 4–7 | length of the data after the 24 bytes of the record header |
/// | 12–15 | 0 | | 8–15 | nanoseconds of `CLOCK_BOOTTIME` |
/// | | | | 16–23 | nanoseconds of `CLOCK_REALTIME` since 1970, signed |
package enum NetlinkRecording {
    /// The version of the format. A reader must reject every other version.
    package static let version: UInt32 = 2

    static let magic = Array("netwatch".utf8)
    static let headerSize = 16
    static let recordHeaderSize = 24

    /// The content of a record.
    package enum Content: Hashable, Sendable {
        /// A datagram with notifications.
        case datagram([UInt8])
        /// The kernel dropped notifications.
        case overrun
        /// A datagram with interfaces or addresses that existed when the recording began: a reply of the kernel to
        /// `RTM_GETLINK` or `RTM_GETADDR`. These records come first.
        case initialState([UInt8])
    }

    /// A received datagram, or the loss of datagrams, with the time of its arrival.
    package struct Record: Hashable, Sendable {
        package var content: Content
        /// The time of arrival in nanoseconds of `CLOCK_BOOTTIME`, which is never set.
        package var monotonic: UInt64
        /// The time of arrival in nanoseconds of `CLOCK_REALTIME` since 1970.
        package var wall: Int64

        package init(_ content: Content, monotonic: UInt64, wall: Int64) {
            self.content = content
            self.monotonic = monotonic
            self.wall = wall
        }

        /// Creates a record with the current time.
        package init(now content: Content) {
            self.init(
                content,
                monotonic: UInt64(clamping: nanoseconds(CLOCK_BOOTTIME)),
                wall: nanoseconds(CLOCK_REALTIME)
            )
        }
    }

    /// The reason why a file cannot be read. `offset` is the position of the faulty record in bytes.
    package enum Failure: Error, Hashable, Sendable {
        case unreadable(SystemError)
        /// The file is a directory, a pipe or a device, which cannot be read twice.
        case notAFile
        /// The file does not begin with the header of a recording.
        case notARecording
        /// The version is not supported by this program.
        case unknownVersion(UInt32)
        /// The record has a kind that does not exist in this version.
        case unknownKind(UInt32, offset: Int)
        /// The record is longer than any datagram, or it reports a loss and is not empty.
        case badLength(UInt32, offset: Int)
        /// The file ends inside the record that begins at this offset.
        case truncated(offset: Int)
    }
}

extension NetlinkRecording.Failure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let error): errnoDescription(error.errno)
        case .notAFile: "not a regular file"
        case .notARecording: "not a recording: `netwatch` is missing at offset 0"
        case .unknownVersion(let version):
            "unsupported version \(version) at offset \(NetlinkRecording.magic.count); "
                + "this program reads version \(NetlinkRecording.version)"
        case .unknownKind(let kind, let offset):
            "unknown record kind \(kind) at offset \(offset); the kinds are 1 to 3"
        case .badLength(let length, let offset):
            "invalid length \(length) of the record at offset \(offset); accepted: up to "
                + "\(DatagramBuffer.datagramSize) bytes for a datagram, and 0 for a record of lost notifications"
        case .truncated(let offset): "truncated: the header or record at offset \(offset) is incomplete"
        }
    }
}

/// Returns the time of a clock in nanoseconds, which fits into 64 bits until the year 2262.
private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension NetlinkRecording {
    /// A reader of a recording. It has only one record in memory at a time.
    ///
    /// The file is not trusted: every length is checked against the file and against the maximum size of a
    /// notification.
    package struct Reader: ~Copyable {
        private let file: FileDescriptor
        private var offset = NetlinkRecording.headerSize

        /// Opens a recording and checks its header.
        ///
        /// - Parameter path: The path of the file, which can be any bytes.
        package static func opening(_ path: UnsafePointer<CChar>) throws(Failure) -> Reader {
            var reader = Reader(file: try opened(path))
            try reader.readHeader()
            return reader
        }

        private init(file: consuming FileDescriptor) {
            self.file = file
        }

        private static func opened(_ path: UnsafePointer<CChar>) throws(Failure) -> FileDescriptor {
            do throws(SystemError) {
                // Without O_NONBLOCK, opening a pipe would wait for a writer.
                let flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC
                let file = FileDescriptor(owning: try systemCall("open") { open(path, flags) })
                let descriptor = file.rawValue
                var status = stat()
                try systemCall("fstat") { fstat(descriptor, &status) }
                if status.st_mode & S_IFMT == S_IFREG { return file }
            } catch {
                throw .unreadable(error)
            }
            throw .notAFile
        }

        private mutating func readHeader() throws(Failure) {
            let header = try read(NetlinkRecording.headerSize, at: 0)
            let magic = NetlinkRecording.magic
            guard header.starts(with: magic) else { throw .notARecording }
            guard header.count == NetlinkRecording.headerSize else { throw .truncated(offset: 0) }
            let version: UInt32 = number(in: header, at: magic.count)
            guard version == NetlinkRecording.version else { throw .unknownVersion(version) }
        }

        /// Returns the next record; `nil` at the end.
        package mutating func next() throws(Failure) -> Record? {
            let header = try read(NetlinkRecording.recordHeaderSize, at: offset)
            if header.isEmpty { return nil }
            guard header.count == NetlinkRecording.recordHeaderSize else { throw .truncated(offset: offset) }
            let record = try record(header)
            offset += record.bytes.count
            return record
        }

        private func record(_ header: [UInt8]) throws(Failure) -> Record {
            let length: UInt32 = number(in: header, at: 4)
            let monotonic: UInt64 = number(in: header, at: 8)
            let wall: Int64 = number(in: header, at: 16)
            let content: Content =
                switch number(in: header, at: 0) as UInt32 {
                case 1: .datagram(try body(length))
                case 2 where length == 0: .overrun
                case 2: throw .badLength(length, offset: offset)
                case 3: .initialState(try body(length))
                case let kind: throw .unknownKind(kind, offset: offset)
                }
            return Record(content, monotonic: monotonic, wall: wall)
        }

        private func body(_ length: UInt32) throws(Failure) -> [UInt8] {
            guard length <= DatagramBuffer.datagramSize else { throw .badLength(length, offset: offset) }
            let body = try read(Int(length), at: offset + NetlinkRecording.recordHeaderSize)
            guard body.count == length else { throw .truncated(offset: offset) }
            return body
        }

        /// Reads `count` bytes. Returns fewer only at the end of the file.
        private func read(_ count: Int, at offset: Int) throws(Failure) -> [UInt8] {
            let descriptor = file.rawValue
            var bytes = [UInt8](repeating: 0, count: count)
            var filled = 0
            do throws(SystemError) {
                while filled < count {
                    let received = try systemCall("read") {
                        bytes.withUnsafeMutableBytes { buffer in
                            pread(
                                descriptor,
                                buffer.baseAddress! + filled,
                                count - filled,
                                off_t(offset + filled)
                            )
                        }
                    }
                    if received == 0 { break }
                    filled += received
                }
            } catch {
                throw .unreadable(error)
            }
            return Array(bytes[..<filled])
        }
    }

    /// Checks a whole recording without keeping it in memory. Returns the number of records.
    ///
    /// - Parameters:
    ///   - path: The path of the file, which can be any bytes.
    ///   - visit: Called with each record. Default: does nothing.
    /// - Throws: ``Failure`` for the first error in the file.
    package static func check(
        _ path: UnsafePointer<CChar>,
        visiting visit: (Record) -> Void = { _ in }
    ) throws(Failure) -> Int {
        var reader = try Reader.opening(path)
        var count = 0
        while let record = try reader.next() {
            visit(record)
            count += 1
        }
        return count
    }
}

/// Reads a little-endian number. The caller must ensure that the bytes of the number are inside `bytes`.
private func number<Value: FixedWidthInteger>(in bytes: [UInt8], at offset: Int) -> Value {
    bytes.withUnsafeBytes { Value(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Value.self)) }
}

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
