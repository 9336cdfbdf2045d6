internal import CNetwatchCurl
internal import Glibc
public import NetwatchEventLoop

/// The error of a transfer that ended without a complete response. It consists of libcurl's error code, the phase that
/// the transfer had reached, and details.
public struct TransferFailure: Error, Hashable, Sendable {
    /// The phase that a transfer had reached.
    public enum Phase: String, Hashable, Sendable, CaseIterable {
        /// The engine had not begun with the request: it rejected the request, or the request waited for other
        /// transfers to the same host.
        case prepare
        /// The host name was being resolved.
        case resolve
        /// The TCP connection was being established.
        case connect
        /// The TLS handshake was under way.
        case tls
        /// The connection was ready, but the kernel had not accepted the whole request yet.
        case request
        /// The kernel had accepted the whole request, or part of the response had arrived.
        case response
    }

    /// The error code of libcurl, a `CURLcode` (`libcurl-errors(3)`). Common values:
    ///
    /// - 6: the host name has no address
    /// - 7: the connection failed
    /// - 8: the response is not valid HTTP; the server speaks another protocol or sends endless frames without data
    /// - 28: a timeout expired
    /// - 42: the transfer was cancelled
    /// - 63: the response body exceeds the limit
    /// - 100: the response head exceeds the limit
    public let code: Int32

    /// The `errno(3)` of the system call that failed, usually of a connection attempt (`CURLINFO_OS_ERRNO`); 0 if no
    /// system call failed or its error is unknown.
    public let osErrno: Int32

    /// The `EAI_…` code of `getaddrinfo(3)` if the name lookup failed; 0 for other failures.
    public let resolverCode: Int32

    /// The phase that the transfer had reached.
    public let phase: Phase

    /// The number of bytes of the request (head and body) that the kernel has accepted for sending. If it is 0, the
    /// server cannot have received any part of the request.
    public let bytesSent: Int64

    /// Whether the request was sent over a reused connection.
    public let reusedConnection: Bool

    /// The failed connection attempts, in the order in which the addresses were tried. Empty unless the transfer failed
    /// while it was connecting.
    public internal(set) var connectionAttempts: [ConnectionAttempt] = []

    /// Whether the server stated that it has not processed the request, although the request had been sent. A server
    /// states this by refusing the request's HTTP/2 stream. Always `false` for requests that libcurl may send again by
    /// itself.
    package internal(set) var isUnprocessed = false

    /// Whether the transfer failed because the response did not begin in time after the request was sent. The code is
    /// then 28.
    package internal(set) var isResponseLate = false

    /// The certificates that the server presented, and why they were rejected; `nil` if the transfer failed for a
    /// reason other than trust.
    package internal(set) var trust: TransferTrustFailure?

    /// A description of the failure, for people. Do not compare it: its text depends on the versions of libcurl and the
    /// C library.
    public package(set) var message: String

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - osErrno: The `errno(3)` of the system call that failed. Default 0: none.
    ///   - resolverCode: The `EAI_…` code of a failed name lookup. Default 0: none.
    ///   - phase: The phase that the transfer had reached.
    ///   - bytesSent: The number of bytes of the request that the kernel had accepted. Default 0.
    ///   - reusedConnection: Whether the connection was reused. Default `false`.
    ///   - message: The description, for people.
    public init(
        code: Int32,
        osErrno: Int32 = 0,
        resolverCode: Int32 = 0,
        phase: Phase,
        bytesSent: Int64 = 0,
        reusedConnection: Bool = false,
        message: String
    ) {
        self.code = code
        self.osErrno = osErrno
        self.resolverCode = resolverCode
        self.phase = phase
        self.bytesSent = bytesSent
        self.reusedConnection = reusedConnection
        self.message = message
    }
}

extension TransferFailure: CustomStringConvertible {
    /// The message with code and phase, such as `Connection refused (curl 7, errno 111, connect)`.
    public var description: String {
        let errno = osErrno == 0 ? "" : ", errno \(osErrno)"
        return "\(message) (curl \(code)\(errno), \(phase.rawValue))"
    }
}

extension TransferFailure {
    /// Whether the transfer failed because this machine was short of descriptors, memory or threads.
    ///
    /// No byte of the request was sent in this case. The failure says nothing about the network or the server.
    public var isLocalShortage: Bool {
        guard bytesSent == 0 else { return false }
        return SystemError.shortages.contains(osErrno) || resolverCode == EAI_MEMORY
    }
}

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

/// The reason why a server was not trusted, and the certificates that it presented.
package struct TransferTrustFailure: Hashable, Sendable {
    /// The check that failed.
    package enum Cause: Hashable, Sendable {
        /// The certificate chain is not valid. ``TrustVerdict/code`` has the reason.
        case chain
        /// The certificate does not name the host.
        case host
        /// The custom check (``TrustCheck``) refused the certificates.
        case check
        /// The server stapled no OCSP response, or one that does not say that its certificate is good.
        case stapledStatus
    }

    package let cause: Cause
    /// The certificates that the server presented; `nil` if the handshake ended before the server presented any.
    package let presented: PresentedTrust?

    package init(cause: Cause, presented: PresentedTrust?) {
        self.cause = cause
        self.presented = presented
    }
}

/// The certificates that a server presents in a handshake, and their evaluation.
package struct PresentedTrust: Hashable, Sendable {
    /// The URL's host, without brackets.
    package let host: String
    /// The certificates in DER. First comes the chain, as far as OpenSSL could build it: the server's own certificate,
    /// then each issuer, up to the root if it is known. The other certificates that the server sent follow.
    package let chain: [[UInt8]]
    /// The result of evaluating the chain against the accepted anchors. If the trust accepts any certificate
    /// (``TransferTrust/anchors`` is `nil`), the result has no effect. It does not cover the host name, which is
    /// checked later.
    package let verdict: TrustVerdict
}

/// OpenSSL's result for a certificate chain.
package struct TrustVerdict: Hashable, Sendable {
    /// The result code: `X509_V_OK` (0) or one of `X509_V_ERR_…` (`X509_verify_cert_error_string(3)`).
    package let code: Int32
    /// The position in the chain of the certificate to which ``code`` applies: 0 is the server's own, 1 its issuer's,
    /// and so on.
    package let depth: Int32
    /// OpenSSL's description.
    package let message: String

    package var isTrusted: Bool { code == 0 }
}

/// The reason why a server refused the client's certificate, as stated by its TLS alert (RFC 8446 §6.2).
package enum ClientCertificateRefusal: Hashable, Sendable {
    /// The server requires a certificate, and the client sent none.
    case required
    /// The server does not accept the certificate that the client sent.
    case rejected
}

extension TransferFailure {
    /// The reason why the server refused the client's certificate; `nil` if the transfer failed for another reason.
    ///
    /// After such a refusal the server has not processed the request.
    ///
    /// libcurl has no code for a refused certificate. Only the failure's message identifies it: the message contains
    /// OpenSSL's text for the TLS alert. In TLS 1.3 the alert arrives after the client has completed its handshake, in
    /// place of the response. libcurl then reports a failure to receive (56) or to send (55).
    package var clientCertificateRefusal: ClientCertificateRefusal? {
        // CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR and CURLE_RECV_ERROR.
        guard [35, 55, 56].contains(code) else { return nil }
        if message.contains("alert certificate required") { return .required }
        return Self.rejections.contains { message.contains("alert \($0)") } ? .rejected : nil
    }

    private static let rejections = [
        "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca", "access denied",
    ]
}

/// Messages about failed TLS connections.
enum TLSMessage {
    /// Returns a message of libcurl. If it contains an entry of OpenSSL's error queue, such as
    /// `error:0A00010B:SSL routines::wrong version number`, returns the failure in words instead, with OpenSSL's reason
    /// in parentheses.
    static func inWords(_ message: String) -> String {
        guard let start = message.firstRange(of: "error:")?.lowerBound else { return message }
        // `error:CODE:LIBRARY:FUNCTION:REASON`, see ERR_error_string(3).
        let parts = message[start...].split(separator: ":", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 5, parts[2] == "SSL routines" else { return message }
        let reason = parts[4].firstRange(of: ", errno").map { parts[4][..<$0.lowerBound] } ?? parts[4]
        return "\(meaning(of: reason)) (\(reason))"
    }

    private static func meaning(of reason: Substring) -> String {
        if reason.contains(" alert ") { return "the server refused the TLS connection" }
        return switch reason {
        case "wrong version number", "http request", "packet length too long":
            "the server does not speak TLS on this port"
        case "certificate verify failed": "the server's certificate is not trusted"
        case "unexpected eof while reading": "the server closed the TLS connection early"
        default: "the TLS connection failed"
        }
    }
}
