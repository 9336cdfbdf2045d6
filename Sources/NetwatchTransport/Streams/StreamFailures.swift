internal import CNetwatchCurl
internal import NetwatchEventLoop

// Failures of streams use libcurl's codes although libcurl is not involved, so that one table covers all failures.
extension TransferFailure {
    /// The connection failed while it was in use.
    static func lost(_ error: SystemError, bytesSent: Int64) -> TransferFailure {
        let isSending = error.call == "send"
        return TransferFailure(
            code: Int32((isSending ? CURLE_SEND_ERROR : CURLE_RECV_ERROR).rawValue),
            osErrno: error.errno,
            phase: isSending ? .request : .response,
            bytesSent: bytesSent,
            message: errnoDescription(error.errno)
        )
    }

    /// A read or a write was requested after its side was closed.
    static func closed(_ side: String) -> TransferFailure {
        TransferFailure(CURLE_BAD_FUNCTION_ARGUMENT, .prepare, "the stream is closed for \(side)")
    }

    /// The arguments of a call are invalid.
    static func refusedArgument(_ message: String) -> TransferFailure {
        TransferFailure(CURLE_BAD_FUNCTION_ARGUMENT, .prepare, message)
    }
}
