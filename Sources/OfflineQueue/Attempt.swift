package import Foundation

/// One transfer to be made: no redirects, no retries beneath it, no resend by the library.
package struct Attempt: Sendable {
    /// What is sent.
    package enum Body: Sendable {
        case none
        case data(Data)
        /// A spooled body, which was looked through and cannot be swapped any more.
        case file(OpenedBody)
    }

    /// The request's id, for logs.
    package let id: String
    package let method: String
    package let url: String
    /// All header lines, `Idempotency-Key` among them.
    package let headers: [QueueRequest.Header]
    package let body: Body
    /// Whether a library that sends it again unasked does no harm.
    package let mayBeSentTwice: Bool
    /// How long its parts may take.
    package let timeouts: AttemptTimeouts
    /// The connection of the attempt before led to the wrong server (421): this one takes a new one.
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

    /// How long it may take in all.
    package var longest: Duration {
        guard case .file(let file) = body else { return timeouts.longest(sending: 0) }
        return timeouts.longest(sending: file.body.size)
    }

    /// How much of a response's body is worth keeping.
    package static let maximumResponseBytes = 64 * 1024

    /// How long the rest of the response may take once its status is known and decides. The slot is worth more than
    /// the rest of the body.
    package static let bodyTimeout: Duration = .seconds(10)
}

/// How one transfer ended.
package enum AttemptOutcome: Sendable {
    /// A final response came. `isTruncated`: its body was cut, by a limit or by the connection.
    case response(status: Int, headers: [(String, String)], body: Data, isTruncated: Bool)
    /// No complete response came.
    case failure(AttemptFailure)
    /// It cannot be sent any more: what was to be sent is not what was accepted.
    case unsendable(reason: String)
}

/// What a transfer failed of, as libcurl and the kernel told it.
package struct AttemptFailure: Hashable, Sendable {
    /// How far a transfer had come.
    package enum Phase: Int, Hashable, Sendable, Comparable, CaseIterable {
        case resolve
        case connect
        case tls
        /// The request, or some of it, may have left.
        case request
        /// The request was sent; the response was awaited or being read.
        case response

        package static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// A `CURLcode`.
    package let code: CInt
    /// `CURLINFO_OS_ERRNO`, 0 when there was none.
    package let errno: CInt
    package let phase: Phase
    /// Bytes of the request that were handed to the kernel.
    package let bytesSent: Int64
    /// The response's status, when its head had come before the failure.
    package let status: Int?
    package private(set) var message: String
    /// Whether this machine was short of something, and nothing was sent for want of it: descriptors, memory, a thread
    /// of the resolver, a place among the session's transfers. The network and the server have no part in it.
    package let isLocalShortage: Bool
    /// Whether the server said that it did not process what was sent.
    package var isUnprocessed = false
    /// The timeout of ours that ended the attempt after all of the request was sent; `nil` when none did.
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

    /// The failure with another message.
    package func saying(_ message: String) -> AttemptFailure {
        var failure = self
        failure.message = message
        return failure
    }
}

/// Makes one transfer. The client is adapted to it.
package protocol AttemptSender: Sendable {
    /// Makes the transfer and returns how it ended. When the task is cancelled it ends soon, with code 42.
    func send(_ attempt: Attempt) async -> AttemptOutcome

    /// Makes attempts from now on use new connections: pooled ones may belong to an old network path.
    func dropConnections() async

    /// Begins attempts again, inside of ``send(_:)``, whose packets were lost with the path to the host: those that connect, and
    /// those that may be sent twice and of which the server has acknowledged nothing.
    func restartStalled(to host: String)

    /// Whether the server of an `https` URL has to prove that it is the URL's host.
    func validatesServer(of url: String) -> Bool
}

extension AttemptSender {
    package func restartStalled(to host: String) {}

    package func validatesServer(of url: String) -> Bool { true }
}

/// What is known of the way to a host. A hint for when to try, never a permission.
package enum GateState: Hashable, Sendable {
    /// There is a route. The generation rises with each change, and when the path was lost and found again. `way` stays
    /// the same while interface, source and gateway do: connections survive a short loss. `nil`: not known.
    case reachable(generation: UInt64, way: UInt64? = nil)
    case notReachable
    /// The host could not be judged.
    case unknown

    package var generation: UInt64? {
        if case .reachable(let generation, _) = self { generation } else { nil }
    }
}

/// Tells when hosts become reachable. The path monitor is adapted to it.
package protocol HostGate: Sendable {
    /// The host's states, the newest only; the first comes soon. Ends when its consumer's task ends.
    ///
    /// - Parameter host: A name or an address; IPv6 without brackets.
    func watch(host: String) -> AsyncStream<GateState>

    /// The state of a watched host at this moment, by new lookups. `nil` when it cannot be asked for: then the last state
    /// of ``watch(host:)`` counts.
    func state(of host: String) async -> GateState?
}

extension HostGate {
    package func state(of host: String) async -> GateState? { nil }
}
