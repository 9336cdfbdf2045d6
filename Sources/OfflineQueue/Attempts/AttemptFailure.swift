/// The cause of a failed transfer, as libcurl and the kernel reported it.
package struct AttemptFailure: Hashable, Sendable {
    /// The phase that a transfer reached.
    package enum Phase: Int, Hashable, Sendable, Comparable, CaseIterable {
        case resolve
        case connect
        case tls
        /// Some or all of the request may have been sent.
        case request
        /// The request was sent, and the response was awaited or being read.
        case response

        package static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// The `CURLcode`.
    package let code: CInt
    /// `CURLINFO_OS_ERRNO`; 0 if there was none.
    package let errno: CInt
    package let phase: Phase
    /// The bytes of the request that were handed to the kernel.
    package let bytesSent: Int64
    /// The response's status, if its head arrived before the failure.
    package let status: Int?
    package private(set) var message: String
    /// Whether nothing was sent because this machine lacked a resource: descriptors, memory, a resolver thread, or a
    /// place among the session's transfers. Neither the network nor the server caused the failure.
    package let isLocalShortage: Bool
    /// Whether the server reported that it did not process the request.
    package var isUnprocessed = false
    /// The timeout of the engine that ended the attempt after all of the request was sent; `nil` if none did.
    package var overrun: Duration?

    package init(
        code: CInt,
        errno: CInt = 0,
        phase: Phase,
        bytesSent: Int64 = 0,
        status: Int? = nil,
        message: String,
        isLocalShortage: Bool = false
    ) {
        self.code = code
        self.errno = errno
        self.phase = phase
        self.bytesSent = bytesSent
        self.status = status
        self.message = message
        self.isLocalShortage = isLocalShortage
    }

    /// Returns the failure with another message.
    package func withMessage(_ message: String) -> AttemptFailure {
        var failure = self
        failure.message = message
        return failure
    }
}
