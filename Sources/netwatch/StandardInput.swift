internal import Glibc
internal import NetwatchEventLoop

/// Standard input, as far as the caller left it open.
enum StandardInput {
    /// Checks that it can be read, before anything is begun: who forgets it must not send an empty body.
    ///
    /// - Throws: A usage error that says why it cannot be read.
    static func requireReadable() throws(CommandError) {
        // A read of no bytes fails as any other one would, and takes nothing.
        guard read(STDIN_FILENO, nil, 0) == -1 else { return }
        throw unreadable(errno)
    }

    /// The error of a failed read.
    static func unreadable(_ error: CInt) -> CommandError {
        let reason = error == EBADF ? "it is closed, or not open for reading" : errnoDescription(error)
        return CommandError(.usage, "could not read standard input: \(reason)")
    }
}
