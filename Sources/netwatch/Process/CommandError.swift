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
