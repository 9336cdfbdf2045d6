internal import Glibc
internal import NetwatchEventLoop

/// The receiving end of the journal's native protocol: a socket that receives entries, as datagrams or as files.
package final class JournalReceiver: Sendable {
    /// A received entry.
    package struct Entry: Hashable, Sendable {
        /// The values by the names of the fields.
        package var fields: [String: String] = [:]
        /// The seals of the file (`F_GET_SEALS`); `nil` for an entry that was sent as a datagram.
        package let seals: CInt?
    }

    // Constants that Swift does not import: F_GET_SEALS and MSG_CMSG_CLOEXEC.
    private static let getSeals: CInt = 1034
    private static let closeOnExec: CInt = 0x4000_0000

    private let descriptor: FileDescriptor

    package init(_ path: String) throws {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let number = try systemCall("socket") { socket(AF_UNIX, type, 0) }
        descriptor = FileDescriptor(owning: number)
        _ = try withUnixAddress(path) { pointer, length in
            try systemCall("bind \(path)") { bind(number, pointer, length) }
        }
    }

    /// Returns the next entry; `nil` if none has arrived.
    package func receive() throws -> Entry? {
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        // A control message with one descriptor: `struct cmsghdr` has 16 bytes.
        var control = [UInt64](repeating: 0, count: 3)
        let (count, hasFile) = try receive(into: &bytes, &control)
        guard count >= 0 else { return nil }
        guard hasFile else { return Self.entry(bytes.prefix(count), seals: nil) }
        let file = FileDescriptor(owning: CInt(truncatingIfNeeded: control[2]))
        let seals = try systemCall("fcntl F_GET_SEALS") { fcntl(file.rawValue, Self.getSeals) }
        return Self.entry(try Self.content(of: file)[...], seals: seals)
    }

    /// Returns the number of received bytes, -1 without an entry, and whether the entry has a file.
    private func receive(
        into bytes: inout [UInt8],
        _ control: inout [UInt64]
    ) throws -> (count: Int, hasFile: Bool) {
        let number = descriptor.rawValue
        return try bytes.withUnsafeMutableBytes { buffer in
            try control.withUnsafeMutableBytes { control in
                var piece = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
                return try withUnsafeMutablePointer(to: &piece) { piece in
                    var message = msghdr()
                    (message.msg_iov, message.msg_iovlen) = (piece, 1)
                    (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
                    let count = recvmsg(number, &message, CInt(MSG_DONTWAIT) | Self.closeOnExec)
                    guard count >= 0 || errno == EAGAIN else {
                        throw SystemError(call: "recvmsg", errno: errno)
                    }
                    return (count, count >= 0 && message.msg_controllen > 0)
                }
            }
        }
    }

    private static func content(of file: borrowing FileDescriptor) throws -> [UInt8] {
        var status = stat()
        let number = file.rawValue
        try systemCall("fstat") { fstat(number, &status) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = try systemCall("pread") { pread(number, &bytes, bytes.count, 0) }
        return Array(bytes.prefix(count))
    }

    /// Parses `NAME=VALUE` and a line break, or `NAME`, a line break, the length of the value, the value and a line
    /// break.
    private static func entry(_ bytes: ArraySlice<UInt8>, seals: CInt?) -> Entry {
        let newline = UInt8(ascii: "\n")
        var (entry, rest) = (Entry(seals: seals), bytes)
        while !rest.isEmpty {
            let line = rest.prefix { $0 != newline }
            rest = rest.dropFirst(line.count + 1)
            if let end = line.firstIndex(of: UInt8(ascii: "=")) {
                entry.fields[text(line[..<end])] = text(line[(end + 1)...])
            } else {
                let length = rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
                entry.fields[text(line)] = text(rest.dropFirst(8).prefix(length))
                rest = rest.dropFirst(8 + length + 1)
            }
        }
        return entry
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
