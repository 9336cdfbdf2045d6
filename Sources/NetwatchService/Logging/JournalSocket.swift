internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// Sends entries to the journal, by its native protocol. Calls never block.
final class JournalSocket: Sendable {
    /// The socket of journald.
    static let systemPath = "/run/systemd/journal/socket"

    private let path: String
    private let socket: FileDescriptor

    /// - Throws: ``SystemError`` if no socket can be created.
    init(path: String = JournalSocket.systemPath) throws(SystemError) {
        self.path = path
        socket = try unixSocket(.datagram)
    }

    /// Sends an entry. One that is too large for a datagram is sent as a file in memory.
    ///
    /// The socket is not connected, so a restart of journald has no effect.
    ///
    /// - Throws: ``SystemError``: `EAGAIN` while journald does not read, `ENOENT` or `ECONNREFUSED` if it does not
    ///   run.
    func send(_ entry: JournalEntry) throws(SystemError) {
        guard let address = UnixSocketAddress(path: path) else {
            throw SystemError(call: "sendto \(path)", errno: ENAMETOOLONG)
        }
        let descriptor = socket.rawValue
        do throws(SystemError) {
            try systemCall("sendto \(path)") {
                address.withSockaddr {
                    sendto(descriptor, entry.bytes, entry.bytes.count, CInt(MSG_NOSIGNAL), $0, $1)
                }
            }
        } catch {
            guard [EMSGSIZE, ENOBUFS].contains(error.errno) else { throw error }
            try send(try Self.sealedFile(entry.bytes), to: address)
        }
    }

    /// Creates a file in memory that can no longer be changed. journald refuses other files in memory.
    private static func sealedFile(_ bytes: [UInt8]) throws(SystemError) -> FileDescriptor {
        let flags = MFD_CLOEXEC | MFD_ALLOW_SEALING
        let file = FileDescriptor(
            owning: try systemCall("memfd_create") { memfd_create("netwatch-journal-entry", flags) }
        )
        let descriptor = file.rawValue
        var written = 0
        while written < bytes.count {
            written += try systemCall("write") {
                bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + written, bytes.count - written) }
            }
        }
        let seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
        try systemCall("fcntl F_ADD_SEALS") { fcntl(descriptor, F_ADD_SEALS, seals) }
        return file
    }

    /// A control message of the type SCM_RIGHTS with one descriptor: `struct cmsghdr` of cmsg(3) on 64-bit Linux, whose
    /// macros Swift does not import.
    private struct PassedDescriptor {
        var length = 20
        var level = SOL_SOCKET
        var type: CInt = 1
        var descriptor: CInt
        var padding: CInt = 0
    }

    /// Sends a descriptor without any data.
    private func send(_ file: consuming FileDescriptor, to address: UnixSocketAddress) throws(SystemError) {
        let descriptor = socket.rawValue
        var passed = PassedDescriptor(descriptor: file.rawValue)
        try systemCall("sendmsg \(path)") {
            address.withSockaddr { name, length in
                withUnsafeMutableBytes(of: &passed) { control in
                    var message = msghdr()
                    message.msg_name = UnsafeMutableRawPointer(mutating: name)
                    message.msg_namelen = length
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL))
                }
            }
        }
    }
}
