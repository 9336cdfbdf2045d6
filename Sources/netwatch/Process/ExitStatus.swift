internal import ArgumentParser

/// The exit statuses of the commands. The first three answer the command's question, the next three classify an HTTP
/// response for `--check-status`, and the others are from sysexits(3).
enum ExitStatus: Int32 {
    /// Yes: reachable, delivered or safely accepted, listed.
    case yes = 0
    /// No: not reachable, given up.
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
    /// Temporary failure (`EX_TEMPFAIL`). Either the service is busy and did nothing, or the request was accepted and
    /// its id printed, but it is not finished yet.
    case tryAgain = 75
    /// This user has no permission, but another one may (`EX_NOPERM`).
    case noPermission = 77
    /// The queue's store or configuration is unusable (`EX_CONFIG`).
    case unusableStore = 78

    var exitCode: ExitCode { ExitCode(rawValue) }
}
