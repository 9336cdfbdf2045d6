internal import Glibc
public import NetwatchEventLoop

/// Why a transfer ended without a complete response: libcurl's code and the phase reached.
public struct TransferFailure: Error, Hashable, Sendable {
    /// The phase that a transfer had reached.
    public enum Phase: String, Hashable, Sendable, CaseIterable {
        /// Nothing was done for the request yet: it was rejected, or it waited for others to the same host.
        case prepare
        /// The host name was being resolved.
        case resolve
        /// The connection was being made.
        case connect
        /// The TLS handshake was under way.
        case tls
        /// The connection was ready; the kernel had not accepted the whole request yet.
        case request
        /// The kernel had accepted the whole request, or part of the response had arrived.
        case response
    }

    /// The `CURLcode` of `libcurl-errors(3)`. Examples: 6, the name has no address; 7, the connection failed; 8, the
    /// response is not valid HTTP (another protocol, or endless frames without data); 28, a timeout; 42, the transfer
    /// was cancelled; 63, the body exceeds the limit; 100, the head exceeds the limit.
    public let code: Int32

    /// The `errno(3)` of the connection attempt that failed (`CURLINFO_OS_ERRNO`), or 0.
    public let osErrno: Int32

    /// The `EAI_…` code of `getaddrinfo(3)` when the name lookup failed, or 0.
    public let resolverCode: Int32

    /// The phase that the transfer had reached.
    public let phase: Phase

    /// The number of bytes of head and body accepted by the kernel. 0 means that the server cannot have received any of
    /// the request.
    public let bytesSent: Int64

    /// Whether the request was sent over a reused connection.
    public let reusedConnection: Bool

    /// The failed connection attempts, in the order in which the addresses were tried. Empty unless the transfer failed
    /// while it was connecting.
    public internal(set) var connectionAttempts: [ConnectionAttempt] = []

    /// Whether the server stated that it did not process the request, although it was sent: it refused the HTTP/2
    /// stream. Set only for requests that libcurl must not send again by itself.
    package internal(set) var isUnprocessed = false

    /// Whether the response did not begin in time after the request was sent. The code is then 28.
    package internal(set) var isAnswerLate = false

    /// The certificates that the server presented and the reason why they were rejected; `nil` if trust was not the
    /// cause.
    package internal(set) var trust: TransferTrustFailure?

    /// A description from libcurl or the resolver. For display only, not for comparison.
    public let message: String

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - osErrno: The `errno(3)` of a failed connection attempt. Default 0.
    ///   - resolverCode: The `EAI_…` code of a failed name lookup. Default 0.
    ///   - phase: The phase that the transfer had reached.
    ///   - bytesSent: The number of bytes sent. Default 0.
    ///   - reusedConnection: Whether the connection was reused. Default false.
    ///   - message: A description.
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
    /// The message with code and phase: `Connection refused (curl 7, errno 111, connect)`.
    public var description: String {
        let errno = osErrno == 0 ? "" : ", errno \(osErrno)"
        return "\(message) (curl \(code)\(errno), \(phase.rawValue))"
    }
}

extension TransferFailure {
    /// Whether this machine was short of descriptors, memory or threads. Nothing was sent then, and the failure says
    /// nothing about the network or the server.
    public var isLocalShortage: Bool {
        guard bytesSent == 0 else { return false }
        return SystemError.shortages.contains(osErrno) || resolverCode == EAI_MEMORY
    }
}
