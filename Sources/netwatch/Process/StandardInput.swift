internal import Glibc
internal import NetwatchEventLoop

/// Standard input, which the caller may have closed.
enum StandardInput {
    /// Checks that standard input can be read, before the command does anything. A closed standard input must not be
    /// taken for an empty body.
    ///
    /// - Throws: A usage error with the reason.
    static func requireReadable() throws(CommandError) {
        // A read of zero bytes fails like any other read, and consumes nothing.
        guard read(STDIN_FILENO, nil, 0) == -1 else { return }
        throw unreadable(errno)
    }

    /// Returns the error for a failed read.
    static func unreadable(_ error: CInt) -> CommandError {
        let reason = error == EBADF ? "it is closed, or not open for reading" : errnoDescription(error)
        return CommandError(.usage, "could not read standard input: \(reason)")
    }
}
