internal import Glibc
public import NetwatchEventLoop

/// Why a transfer did not end with a whole response: libcurl's verdict and how far it came.
public struct TransferFailure: Error, Hashable, Sendable {
    /// How far a transfer had come.
    public enum Phase: String, Hashable, Sendable, CaseIterable {
        /// Nothing had been done for the request yet: it was refused, or waited for others to the same host.
        case prepare
        /// The host's name was being looked up.
        case resolve
        /// The connection was being made.
        case connect
        /// The TLS handshake was under way.
        case tls
        /// The connection was ready; not all of the request was handed to the kernel.
        case request
        /// All of the request was handed to the kernel, or part of the response had come.
        case response
    }

    /// The `CURLcode` of `libcurl-errors(3)`: 6 for a name that has no address, 7 for a connection that
    /// was not made, 8 for what is no answer (another protocol, or frames without end of which nothing comes), 28 for
    /// a timeout, 42 for a cancelled transfer, 63 for a body over the limit, 100 for
    /// a head over the limit, …
    public let code: Int32

    /// The `errno(3)` of the connection attempt that failed (`CURLINFO_OS_ERRNO`), or 0.
    public let osErrno: Int32

    /// The `EAI_…` code of `getaddrinfo(3)` when the name lookup failed, or 0.
    public let resolverCode: Int32

    /// How far the transfer had come.
    public let phase: Phase

    /// How many bytes of head and body were handed to the kernel. 0 means that the server cannot have
    /// seen any of the request.
    public let bytesSent: Int64

    /// Whether the request went over a connection that an earlier request had made.
    public let reusedConnection: Bool

    /// Each address of the host that was connected to in vain, in the order in which they were tried; empty unless the
    /// transfer failed while the connection was being made.
    public internal(set) var connectionAttempts: [ConnectionAttempt] = []

    /// Whether the server said that it did not process the request, although it was sent: it refused the HTTP/2 stream.
    /// Known only of requests that libcurl must not send again by itself.
    package internal(set) var isUnprocessed = false

    /// Whether the answer did not begin in time after the request was sent; the code is 28 then.
    package internal(set) var isAnswerLate = false

    /// What the server showed, and what was wrong with it, when it was not trusted.
    package internal(set) var trust: TransferTrustFailure?

    /// What happened, in libcurl's or the resolver's words. For people, not for comparison.
    public let message: String

    /// Describes a failure.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - osErrno: The `errno(3)` of a failed connection attempt. Default 0.
    ///   - resolverCode: The `EAI_…` code of a failed name lookup. Default 0.
    ///   - phase: How far the transfer had come.
    ///   - bytesSent: How many bytes were sent. Default 0.
    ///   - reusedConnection: Whether the connection was an old one. Default false.
    ///   - message: What happened.
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
    /// Whether this machine was short of descriptors, memory or threads. Nothing was sent then, and it says nothing
    /// about the network or the server.
    public var isLocalShortage: Bool {
        guard bytesSent == 0 else { return false }
        return SystemError.shortages.contains(osErrno) || resolverCode == EAI_MEMORY
    }
}
