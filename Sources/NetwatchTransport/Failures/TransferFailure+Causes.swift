internal import CNetwatchCurl
internal import NetwatchEventLoop

extension TransferFailure {
    init(_ code: CURLcode, _ phase: Phase, errno: Int32 = 0, _ message: String) {
        self.init(code: Int32(code.rawValue), osErrno: errno, phase: phase, message: message)
    }

    /// Returns the failure of a request that is rejected before it is tried.
    static func refused(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(code, .prepare, message)
    }

    /// The engine could not start its threads.
    static func notStarted(_ error: SystemError) -> TransferFailure {
        TransferFailure(CURLE_FAILED_INIT, .prepare, errno: error.errno, "\(error)")
    }
}

// Failures of the name lookup.
extension TransferFailure {
    static func noAddress(_ failure: NameResolver.Failure) -> TransferFailure {
        TransferFailure(
            code: Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue),
            osErrno: failure.errno,
            resolverCode: failure.code,
            phase: .resolve,
            message: "\(failure)"
        )
    }

    /// The host has no address of a family; `nil`: of any.
    static func noAddress(of family: IPAddress.Family?) -> TransferFailure {
        let kind =
            switch family {
            case .ipv4: "IPv4 address"
            case .ipv6: "IPv6 address"
            case nil: "address"
            }
        return TransferFailure(CURLE_COULDNT_RESOLVE_HOST, .resolve, "the host has no \(kind)")
    }

    static func lookupTimedOut(hasStarted: Bool) -> TransferFailure {
        .lookupInterrupted(CURLE_OPERATION_TIMEDOUT, "the name lookup timed out", hasStarted: hasStarted)
    }

    /// The lookup was cancelled or timed out.
    ///
    /// - Parameter hasStarted: Whether a thread had started the lookup. If not, the name servers are not the cause.
    static func lookupInterrupted(_ code: CURLcode, _ message: String, hasStarted: Bool) -> TransferFailure {
        hasStarted
            ? TransferFailure(code, .resolve, message)
            : .refused(code, "\(message): all resolver threads were busy")
    }
}

// Failures of the connection attempts.
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

    static func connectTimedOut(after timeout: Duration, _ failure: ConnectionFailure) -> TransferFailure {
        // The shortage is reported, because an address that could not be tried might have answered.
        let shortage = failure.verdict.flatMap { SystemError.shortages.contains($0.errno) ? $0.errno : nil }
        return connecting(
            CURLE_OPERATION_TIMEDOUT,
            errno: shortage ?? 0,
            failure.attempts,
            "no connection within \(timeout) (\(failure))"
        )
    }

    /// The transfer was cancelled while it was connecting.
    static func connectCancelled(
        _ interruption: HostConnector.Interruption,
        _ message: String
    ) -> TransferFailure {
        switch interruption {
        case .none: TransferFailure(CURLE_ABORTED_BY_CALLBACK, .connect, message)
        case .lookup(let hasStarted):
            .lookupInterrupted(CURLE_ABORTED_BY_CALLBACK, message, hasStarted: hasStarted)
        case .connecting(let failure): connecting(CURLE_ABORTED_BY_CALLBACK, failure.attempts, message)
        }
    }

    private static func connecting(
        _ code: CURLcode,
        errno: Int32 = 0,
        _ attempts: [ConnectionAttempt],
        _ message: String
    ) -> TransferFailure {
        var failure = TransferFailure(code, .connect, errno: errno, message)
        failure.connectionAttempts = attempts
        return failure
    }
}

// Failures of streams. They use libcurl's codes although libcurl is not involved, so that one table covers all
// failures.
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
