internal import Glibc
internal import NetwatchService

/// Checks the path of a control socket before it is used.
enum SocketPath {
    /// - Throws: A usage error if the path is invalid for a unix socket (`unix(7)`).
    static func requireUsable(_ path: ArgumentBytes) throws(CommandError) {
        let length = path.bytes.count
        guard length > 0 else { throw CommandError(.usage, "the path of the socket must not be empty") }
        guard !(1...UnixSocketAddress.longestPath).contains(length) else { return }
        throw CommandError(
            .usage,
            "the path of a socket must have 1 to \(UnixSocketAddress.longestPath) bytes; "
                + "\(Printer.quoted(path.description)) has \(length)"
        )
    }

    /// - Throws: A usage error if the path is invalid for a unix socket, or names a file that is not a socket. A path
    ///   without a file is valid, because the service may create the socket later.
    static func requireSocket(_ path: ArgumentBytes) throws(CommandError) {
        try requireUsable(path)
        var status = stat()
        guard stat(path.cString, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK else { return }
        throw CommandError(.usage, "\(Printer.quoted(path.description)) is not a socket")
    }
}
