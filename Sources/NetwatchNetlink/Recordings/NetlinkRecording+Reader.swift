internal import Glibc
internal import NetwatchEventLoop

extension NetlinkRecording {
    /// A reader of a recording. It has only one record in memory at a time.
    ///
    /// The file is not trusted: every length is checked against the file and against the maximum size of a
    /// notification.
    package struct Reader: ~Copyable {
        private let file: FileDescriptor
        private var offset = NetlinkRecording.headerSize
        private var version = NetlinkRecording.oldestVersion

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
            version = number(in: header, at: magic.count)
            let known = NetlinkRecording.oldestVersion...NetlinkRecording.version
            guard known.contains(version) else { throw .unknownVersion(version) }
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
                case 3 where version >= NetlinkRecording.initialStateVersion: .initialState(try body(length))
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
