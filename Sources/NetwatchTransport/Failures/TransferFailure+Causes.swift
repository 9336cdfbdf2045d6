internal import CNetwatchCurl
internal import NetwatchEventLoop

extension TransferFailure {
    init(_ code: CURLcode, _ phase: Phase, errno: Int32 = 0, _ message: String) {
        self.init(code: Int32(code.rawValue), osErrno: errno, phase: phase, message: message)
    }

    /// Returns the failure of a request that ended before the engine began any work for it.
    static func refused(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(code, .prepare, message)
    }

    /// Returns the failure of a request whose engine could not start its threads.
    static func notStarted(_ error: SystemError) -> TransferFailure {
        TransferFailure(CURLE_FAILED_INIT, .prepare, errno: error.errno, "\(error)")
    }
}

// Failures of the name lookup.
extension TransferFailure {
    /// Returns the failure of a transfer whose host could not be resolved.
    static func unresolved(_ host: String, _ failure: NameResolver.Failure) -> TransferFailure {
        TransferFailure(
            code: Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue),
            osErrno: failure.errno,
            resolverCode: failure.code,
            phase: .resolve,
            message: "could not resolve `\(host)`: \(failure)"
        )
    }

    /// Returns the failure of a request whose host has no address that the transfer can use.
    ///
    /// - Parameter family: The address family that is missing; `nil` if the host has no address at all.
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

    /// Returns the failure of a lookup that was cancelled or timed out.
    ///
    /// - Parameter hasStarted: Whether a resolver thread had started the lookup. If none had, this machine was too busy
    ///   and the name servers are not the cause.
    static func lookupInterrupted(_ code: CURLcode, _ message: String, hasStarted: Bool) -> TransferFailure {
        hasStarted
            ? TransferFailure(code, .resolve, message)
            : .refused(code, "\(message): all resolver threads were busy")
    }
}

// Failures of the connection attempts.
extension TransferFailure {
    /// Returns the failure of a transfer that could not connect to any of its addresses.
    static func notConnected(_ failure: ConnectionFailure) -> TransferFailure {
        let verdict = failure.verdict
        // libcurl has a separate code for a socket that could not be bound.
        let isUnbound = verdict.map { !["connect", "socket", "epoll_ctl"].contains($0.call) } ?? false
        return connecting(
            isUnbound ? CURLE_INTERFACE_FAILED : CURLE_COULDNT_CONNECT,
            errno: verdict?.errno ?? 0,
            failure.attempts,
            "\(failure)"
        )
    }

    static func connectTimedOut(after timeout: Duration, _ failure: ConnectionFailure) -> TransferFailure {
        // If a local shortage prevented attempts to some addresses, its `errno` is reported with the timeout: one of
        // these addresses might have accepted the connection.
        let shortage = failure.verdict.flatMap { SystemError.shortages.contains($0.errno) ? $0.errno : nil }
        return connecting(
            CURLE_OPERATION_TIMEDOUT,
            errno: shortage ?? 0,
            failure.attempts,
            "no connection within \(timeout) (\(failure))"
        )
    }

    /// Returns the failure of a transfer that was cancelled while it waited for the name lookup or the connection.
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

// Failures of streams. Streams do not use libcurl, but their failures have libcurl's codes, so that callers need only
// one table of codes.
extension TransferFailure {
    /// Returns the failure of a stream whose connection broke during a read or a write.
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

    /// Returns the failure of a read after the stream was closed for reading, or of a write after it was closed for
    /// writing.
    ///
    /// - Parameter side: "reading" or "writing".
    static func closed(_ side: String) -> TransferFailure {
        TransferFailure(CURLE_BAD_FUNCTION_ARGUMENT, .prepare, "the stream is closed for \(side)")
    }

    /// Returns the failure of a call with invalid arguments.
    static func refusedArgument(_ message: String) -> TransferFailure {
        TransferFailure(CURLE_BAD_FUNCTION_ARGUMENT, .prepare, message)
    }
}
