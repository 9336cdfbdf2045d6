internal import CNetwatchTestSupport
internal import Glibc
internal import NetwatchEventLoop

extension NetworkNamespace {
    /// Waits until the output of an `ip` command contains a text. Blocks the calling thread.
    ///
    /// The command runs immediately, and again after each kernel notification of a link or an address.
    ///
    /// - Parameters:
    ///   - arguments: The arguments of `ip`, such as `-br link show near0`.
    ///   - text: The text that the output must contain.
    /// - Throws: ``CommandFailure`` if the command fails. ``SystemError`` of `socket`, `bind` or `recv`. `recv` fails
    ///   with `EAGAIN` if there is no notification for 50 s.
    package func wait(until arguments: String, prints text: String) throws {
        // Opened before the command runs, so that no change after that is missed.
        let announcements = FileDescriptor(owning: try openAnnouncements())
        let descriptor = announcements.rawValue
        while try !shell("ip \(arguments)").contains(text) { try Self.waitForAnnouncement(on: descriptor) }
    }

    private static func waitForAnnouncement(on descriptor: CInt) throws(SystemError) {
        var bytes = [UInt8](repeating: 0, count: 32_768)
        guard recv(descriptor, &bytes, bytes.count, 0) < 0 else { return }
        // ENOBUFS means that the kernel dropped notifications, so something may have changed.
        let error = errno
        guard error == EINTR || error == ENOBUFS else { throw SystemError(call: "recv", errno: error) }
    }

    private func openAnnouncements() throws -> CInt {
        let opened: Result<CInt, SystemError> = run {
            Result { () throws(SystemError) in
                try systemCall("netlink socket") { netwatch_open_announcements() }
            }
        }
        let descriptor = try opened.get()
        // The timeout only limits the duration of a failing test.
        var timeout = timeval(tv_sec: 50, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }
}
