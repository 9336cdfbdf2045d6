/// The cause of a failed transfer, as libcurl and the kernel reported it.
package struct AttemptFailure: Hashable, Sendable {
    /// The last phase that a transfer reached, in the order of a transfer.
    package enum Phase: Int, Hashable, Sendable, Comparable, CaseIterable {
        case resolve
        case connect
        case tls
        /// The request was being sent. The server may have received some or all of it.
        case request
        /// The whole request was sent. The transfer waited for the response, or was reading it.
        case response

        package static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// The `CURLcode`.
    package let code: CInt
    /// The system's error number (`CURLINFO_OS_ERRNO`); 0 if there was none.
    package let errno: CInt
    package let phase: Phase
    /// The bytes of the request that were handed to the kernel.
    package let bytesSent: Int64
    /// The response's status; `nil` if the transfer failed before the head of the response arrived.
    package let status: Int?
    package private(set) var message: String
    /// Whether nothing was sent because this machine was short of a resource, so that neither the network nor the
    /// server caused the failure. The resource is descriptors, memory, a resolver thread, or a free transfer under the
    /// session's limit per host.
    package let isLocalShortage: Bool
    /// Whether the server reported that it did not process the request.
    package var isUnprocessed = false
    /// The timeout that ended the attempt after the whole request was sent and before a response arrived. The server
    /// may still execute the request. `nil` if the attempt ended in any other way.
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

    /// The failure of an attempt that the queue cancelled before anything was sent. 42 is CURLE_ABORTED_BY_CALLBACK.
    static let cancelledUnsent = AttemptFailure(code: 42, phase: .resolve, message: "cancelled")

    /// Returns a copy of the failure with another message.
    package func withMessage(_ message: String) -> AttemptFailure {
        var failure = self
        failure.message = message
        return failure
    }
}
