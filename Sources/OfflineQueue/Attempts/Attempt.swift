package import Foundation

/// One HTTP transfer. It follows no redirects, and neither the client nor libcurl repeats it.
package struct Attempt: Sendable {
    /// The body to send.
    package enum Body: Sendable {
        case none
        case data(Data)
        /// A spooled body that was verified. It is open, so that the file cannot be replaced.
        case file(OpenedBody)
    }

    /// The request's id, for logs.
    package let id: String
    package let method: String
    package let url: String
    /// All header lines, including `Idempotency-Key`.
    package let headers: [QueueRequest.Header]
    package let body: Body
    /// Whether an unrequested resend by libcurl is harmless.
    package let mayBeSentTwice: Bool
    /// The timeouts of this attempt.
    package let timeouts: AttemptTimeouts
    /// Whether the previous attempt's connection led to the wrong server (421). This attempt then uses a new
    /// connection.
    package let isMisdirected: Bool

    package init(
        id: String,
        method: String,
        url: String,
        headers: [QueueRequest.Header],
        body: Body,
        mayBeSentTwice: Bool,
        timeouts: AttemptTimeouts = AttemptTimeouts(),
        isMisdirected: Bool = false
    ) {
        self.id = id
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.mayBeSentTwice = mayBeSentTwice
        self.timeouts = timeouts
        self.isMisdirected = isMisdirected
    }

    /// The maximum duration of the whole attempt.
    package var longest: Duration {
        guard case .file(let file) = body else { return timeouts.longest(sending: 0) }
        return timeouts.longest(sending: file.body.size)
    }

    /// The maximum number of bytes of a response's body that are kept.
    package static let maximumResponseBytes = 64 * 1024

    /// The time limit for the rest of the response, once its status is known and decides the outcome. The slot is worth
    /// more than the rest of the body.
    package static let bodyTimeout: Duration = .seconds(10)
}

/// The result of one transfer.
package enum AttemptOutcome: Sendable {
    /// A final response. `isTruncated`: a limit or the end of the connection cut its body.
    case response(status: Int, headers: [(String, String)], body: Data, isTruncated: Bool)
    /// No complete response was received.
    case failure(AttemptFailure)
    /// The body can no longer be sent: it is missing or is not what was accepted.
    case unsendable(reason: String)
}

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
    package func saying(_ message: String) -> AttemptFailure {
        var failure = self
        failure.message = message
        return failure
    }
}

/// Performs transfers. An adapter implements it with the HTTP client.
package protocol AttemptSender: Sendable {
    /// Performs the transfer and returns its result. When the task is cancelled, it ends soon, with `CURLcode` 42.
    func send(_ attempt: Attempt) async -> AttemptOutcome

    /// Makes later attempts use new connections, because pooled ones may belong to an old network path.
    func dropConnections() async

    /// Repeats stalled attempts to the host within ``send(_:)``, because their packets were lost with the path. These are
    /// attempts that are connecting, and attempts that are safe to repeat and of which the server acknowledged nothing.
    func restartStalled(to host: String)

    /// Returns whether the server of an `https` URL must prove that it is the URL's host.
    func validatesServer(of url: String) -> Bool
}

extension AttemptSender {
    package func restartStalled(to host: String) {}

    package func validatesServer(of url: String) -> Bool { true }
}

/// The known state of the path to a host. It is a hint for when to try, and never prevents an attempt.
package enum GateState: Hashable, Sendable {
    /// There is a route. `generation` rises with each change, also when the path was lost and found again. `way`
    /// changes only with the interface, source address or gateway: connections survive a short loss. `nil`: not known.
    case reachable(generation: UInt64, way: UInt64? = nil)
    case notReachable
    /// The state of the host could not be determined.
    case unknown

    package var generation: UInt64? {
        if case .reachable(let generation, _) = self { generation } else { nil }
    }
}

/// Reports when hosts become reachable. An adapter implements it with the path monitor.
package protocol HostGate: Sendable {
    /// Returns the host's states. Only the newest one is buffered, and the first follows soon. The stream ends when its
    /// consumer's task ends.
    ///
    /// - Parameter host: A name or an address; IPv6 without brackets.
    func watch(host: String) -> AsyncStream<GateState>

    /// Returns the current state of a watched host, by new lookups. `nil` if it cannot be queried; then the last state
    /// of ``watch(host:)`` applies.
    func state(of host: String) async -> GateState?
}

extension HostGate {
    package func state(of host: String) async -> GateState? { nil }
}
