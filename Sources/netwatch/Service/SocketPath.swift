internal import Glibc
internal import NetwatchService

/// The path of a control socket, before anything is done with it.
enum SocketPath {
    /// - Throws: A usage error for a path that no unix socket can have (`unix(7)`).
    static func requireUsable(_ path: String) throws(CommandError) {
        let length = path.utf8.count
        guard !(1...UnixSocketAddress.longestPath).contains(length) else { return }
        throw CommandError(
            .usage,
            "the path of a socket has 1 to \(UnixSocketAddress.longestPath) bytes, and \(Printer.quoted(path)) has \(length)"
        )
    }

    /// - Throws: A usage error for a path that no unix socket can have, and for a file that is no socket. What is not
    ///   there may come.
    static func requireSocket(_ path: String) throws(CommandError) {
        try requireUsable(path)
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK else { return }
        throw CommandError(.usage, "\(Printer.quoted(path)) is not a socket")
    }
}
