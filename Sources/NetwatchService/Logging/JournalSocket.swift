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

/// Writes lines to standard error while it is connected to the journal. If the journal does not read, a call waits only
/// for a short time, and the lines are lost. Later lines say how many entries.
final class JournalStream: Sendable {
    private struct State {
        /// Whether the last call has waited without success. Until a call succeeds, calls do not wait.
        var isStalled = false
        /// Whether a part of a line was written that has no end.
        var isCut = false
        /// The number of entries that were lost since the last call that succeeded.
        var lost = 0
    }

    private let descriptor: CInt
    private let timeout: Duration
    private let state = Lock(State())

    /// - Parameters:
    ///   - descriptor: The descriptor to write to. The caller must not close it.
    ///   - timeout: The maximum time of a call. Default 100 ms.
    init(_ descriptor: CInt = STDERR_FILENO, timeout: Duration = .milliseconds(100)) {
        self.descriptor = descriptor
        self.timeout = timeout
    }

    /// Writes the lines of one entry. Each must have its priority and its end. Calls of different threads do not mix.
    func write(_ lines: String) {
        state.withLock { state in
            let bytes = Array((Self.note(state) + lines).utf8)
            let sent = send(bytes, within: state.isStalled ? .zero : timeout)
            if sent == bytes.count {
                state = State()
            } else {
                state.isStalled = true
                state.isCut = state.isCut || sent > 0
                state.lost += 1
            }
        }
    }

    /// Returns a warning about the entries that were lost, for another way to the journal; `nil` if there are none.
    func takeLoss() -> String? {
        state.withLock { state in
            defer { state.lost = 0 }
            return Self.loss(state)
        }
    }

    private static func loss(_ state: State) -> String? {
        guard state.lost > 0 else { return nil }
        return "log entries that were lost because the journal did not read them: \(state.lost)"
    }

    /// Returns the text before the next entry: the end of a line that was cut, and the warning about lost entries.
    private static func note(_ state: State) -> String {
        (state.isCut ? "\n" : "") + (loss(state).map { "<4>\($0)\n" } ?? "")
    }

    /// Sends bytes until the time is over. Returns their number.
    private func send(_ bytes: [UInt8], within limit: Duration) -> Int {
        let deadline = ContinuousClock.now + limit
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor,
                    buffer.baseAddress! + sent,
                    buffer.count - sent,
                    CInt(MSG_DONTWAIT | MSG_NOSIGNAL)
                )
            }
            if count > 0 { sent += count }
            guard count < 0 else { continue }
            switch errno {
            case EINTR: continue
            case EAGAIN: guard isWritable(by: deadline) else { return sent }
            default: return sent
            }
        }
        return sent
    }

    private func isWritable(by deadline: ContinuousClock.Instant) -> Bool {
        let rest = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
        guard rest > 0 else { return false }
        var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&polled, 1, CInt(rest.rounded(.up))) > 0
    }
}
