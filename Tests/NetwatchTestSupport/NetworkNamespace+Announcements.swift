internal import CNetwatchTestSupport
internal import Glibc
internal import NetwatchEventLoop

extension NetworkNamespace {
    /// Waits until the output of an `ip` command contains a text. The command runs immediately, and again after each
    /// announcement of a link or an address.
    ///
    /// Blocks the calling thread.
    ///
    /// - Parameters:
    ///   - arguments: The arguments of `ip`: `-br link show near0`.
    ///   - text: The text that the output must contain.
    /// - Throws: ``CommandFailure`` if the command fails; ``SystemError`` of `socket` or `bind`, and of `recv`
    ///   (`EAGAIN`) if the kernel announces nothing for 50 s.
    package func wait(until arguments: String, prints text: String) throws {
        // Opened before the first check, so that no change after it is missed.
        let announcements = FileDescriptor(owning: try openAnnouncements())
        let descriptor = announcements.rawValue
        while try !shell("ip \(arguments)").contains(text) { try Self.waitForAnnouncement(on: descriptor) }
    }

    private static func waitForAnnouncement(on descriptor: CInt) throws(SystemError) {
        var bytes = [UInt8](repeating: 0, count: 32_768)
        guard recv(descriptor, &bytes, bytes.count, 0) < 0 else { return }
        // If the kernel dropped announcements (ENOBUFS), there may be a change too.
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
        // This only limits the duration of a failing test.
        var timeout = timeval(tv_sec: 50, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }
}
