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
