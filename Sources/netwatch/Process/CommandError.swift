internal import ArgumentParser
internal import ClientCore

/// The failure that ends a command: the exit status, the message and a hint.
struct CommandError: Error {
    let status: ExitStatus
    let message: String
    let hint: String?
    /// Whether the requested action may have been done despite the failure.
    var isOutcomeUnknown = false
    /// The service's error code, if it sent one.
    var code: String?
    /// The offset at which the next piece of an upload must start, if the service refused the offset.
    var offset: Int64?

    init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
        self.status = status
        self.message = message
        self.hint = hint
    }

    func with(hint: String) -> CommandError {
        var error = CommandError(status, message, hint: hint)
        (error.isOutcomeUnknown, error.code, error.offset) = (isOutcomeUnknown, code, offset)
        return error
    }

    var withUnknownOutcome: CommandError {
        var error = self
        error.isOutcomeUnknown = true
        return error
    }
}

extension CommandError {
    /// The failure of every command that sends HTTP requests, if libcurl uses another major version of OpenSSL than
    /// this program; `nil` otherwise.
    ///
    /// The transfers would fail with the same message. A command that checks this first fails before it changes
    /// anything, and with a status after which systemd does not start the service again.
    static var unusableTransport: CommandError? {
        SessionManager.transportConflict.map {
            CommandError(
                .unusableStore,
                $0,
                hint: "install a libcurl and a netwatch that use the same major version of OpenSSL"
            )
        }
    }

    /// - Throws: ``unusableTransport``, if it is not `nil`.
    static func requireUsableTransport() throws(CommandError) {
        if let unusableTransport { throw unusableTransport }
    }
}

/// The exit statuses of the commands. 0 to 2 answer the command's question. With `--check-status`, 3 to 5 classify an
/// HTTP response. The others are from sysexits(3).
enum ExitStatus: Int32 {
    /// Yes: the host is reachable, the request is delivered or safely accepted, the data was printed.
    case yes = 0
    /// No: the host is not reachable, the request was given up.
    case no = 1
    /// The result is unknown, or the action failed.
    case unknown = 2
    /// The server responded with a redirect, HTTP 3xx.
    case redirected = 3
    /// The server responded with HTTP 4xx.
    case clientError = 4
    /// The server responded with HTTP 5xx.
    case serverError = 5
    /// The arguments are wrong (`EX_USAGE`).
    case usage = 64
    /// The service is not running (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// Temporary failure (`EX_TEMPFAIL`): the service is busy and has done nothing; or the request was accepted and its
    /// id printed, but it is not finished yet; or the group database cannot be read.
    case tryAgain = 75
    /// This user has no permission. Another user may have it (`EX_NOPERM`).
    case noPermission = 77
    /// The queue's store, the configuration or the installed libcurl is unusable (`EX_CONFIG`).
    case unusableStore = 78

    var exitCode: ExitCode { ExitCode(rawValue) }
}
