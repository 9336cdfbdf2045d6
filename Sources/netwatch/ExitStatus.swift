internal import ArgumentParser

/// How commands end. The first three answer the question that was asked; the others are of sysexits(3).
enum ExitStatus: Int32 {
    /// Yes: reachable, delivered or safely accepted, listed.
    case yes = 0
    /// No: not reachable, given up.
    case no = 1
    /// It could not be told or done.
    case unknown = 2
    /// The arguments are wrong (`EX_USAGE`).
    case usage = 64
    /// The service is not there (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// The service's socket may not be used by this user (`EX_NOPERM`).
    case noPermission = 77

    var exitCode: ExitCode { ExitCode(rawValue) }
}

/// A failure that a command ends with: what went wrong, and what to try.
struct CommandError: Error {
    let status: ExitStatus
    let message: String
    let hint: String?

    init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
        self.status = status
        self.message = message
        self.hint = hint
    }
}
