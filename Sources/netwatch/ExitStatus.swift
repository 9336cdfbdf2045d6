internal import ArgumentParser

/// How commands end. The first three answer the question that was asked, the next three tell of an answer that
/// `--check-status` asks about; the others are of sysexits(3).
enum ExitStatus: Int32 {
    /// Yes: reachable, delivered or safely accepted, listed.
    case yes = 0
    /// No: not reachable, given up.
    case no = 1
    /// It could not be told or done.
    case unknown = 2
    /// The server answered with a redirect, HTTP 3xx.
    case redirected = 3
    /// The server answered with HTTP 4xx.
    case clientError = 4
    /// The server answered with HTTP 5xx.
    case serverError = 5
    /// The arguments are wrong (`EX_USAGE`).
    case usage = 64
    /// The service is not running (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// Not now (`EX_TEMPFAIL`): the service is busy and did nothing; or a request is accepted, its id was printed, and
    /// it is not over yet.
    case tryAgain = 75
    /// This user may not do it; another one may (`EX_NOPERM`).
    case noPermission = 77
    /// The queue's store, or a setting of the queue, cannot be used as it is (`EX_CONFIG`).
    case unusableStore = 78

    var exitCode: ExitCode { ExitCode(rawValue) }
}

/// A failure that a command ends with: what went wrong, and what to try.
struct CommandError: Error {
    let status: ExitStatus
    let message: String
    let hint: String?
    /// Whether what was asked for may have been done all the same.
    var leavesDoubt = false
    /// The service's own name of the failure, if it answered with one.
    var code: String?
    /// Where a piece of a body would have had to begin.
    var offset: Int64?

    init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
        self.status = status
        self.message = message
        self.hint = hint
    }

    func with(hint: String) -> CommandError {
        var error = CommandError(status, message, hint: hint)
        (error.leavesDoubt, error.code, error.offset) = (leavesDoubt, code, offset)
        return error
    }

    var leavingDoubt: CommandError {
        var error = self
        error.leavesDoubt = true
        return error
    }
}
