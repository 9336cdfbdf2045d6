internal import CNetwatchCurl
internal import NetwatchEventLoop

// Connection failures of transfers and streams.
extension TransferFailure {
    /// The connection attempts to all addresses failed.
    static func notConnected(_ failure: ConnectionFailure) -> TransferFailure {
        let verdict = failure.verdict
        // The socket could not be bound. libcurl has a separate code for that.
        let isUnbound = verdict.map { !["connect", "socket", "epoll_ctl"].contains($0.call) } ?? false
        return connecting(
            isUnbound ? CURLE_INTERFACE_FAILED : CURLE_COULDNT_CONNECT,
            errno: verdict?.errno ?? 0,
            failure.attempts,
            "\(failure)"
        )
    }

    /// - Parameter failure: The outcomes of the attempts; `nil` if there was none.
    static func connectTimedOut(after timeout: Duration, _ failure: ConnectionFailure?) -> TransferFailure {
        let attempts = failure.map { " (\($0))" } ?? ""
        // The shortage is reported, because an address that could not be tried might have answered.
        let shortage = failure?.verdict.flatMap { SystemError.shortages.contains($0.errno) ? $0.errno : nil }
        return connecting(
            CURLE_OPERATION_TIMEDOUT,
            errno: shortage ?? 0,
            failure?.attempts ?? [],
            "no connection within \(timeout)\(attempts)"
        )
    }

    /// The transfer was cancelled while it was connecting.
    static func connectCancelled(_ failure: ConnectionFailure?, _ message: String) -> TransferFailure {
        connecting(CURLE_ABORTED_BY_CALLBACK, failure?.attempts ?? [], message)
    }

    private static func connecting(
        _ code: CURLcode,
        errno: Int32 = 0,
        _ attempts: [ConnectionAttempt],
        _ message: String
    ) -> TransferFailure {
        var failure = TransferFailure(
            code: Int32(code.rawValue),
            osErrno: errno,
            phase: .connect,
            message: message
        )
        failure.connectionAttempts = attempts
        return failure
    }
}
