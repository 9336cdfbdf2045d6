internal import ArgumentParser

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
