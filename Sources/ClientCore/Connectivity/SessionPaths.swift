internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

/// The path monitor of a session, created on first use. So a program has no monitor thread as long as its requests stay
/// on this machine and do not fail.
final class SessionPaths: Sendable {
    private let make: @Sendable () -> PathMonitor
    private let monitor = Lock<PathMonitor?>(nil)
    /// The queue on which the monitor is created. Creating a monitor takes about a millisecond.
    private let queue = DispatchQueue(label: "netwatch.paths", target: .global(qos: .utility))

    init(_ make: @escaping @Sendable () -> PathMonitor) {
        self.make = make
    }

    /// Calls `body` once with the monitor: immediately if the monitor exists, otherwise on a separate queue after
    /// creating it.
    func withMonitor(_ body: @escaping @Sendable (PathMonitor) -> Void) {
        if let monitor = monitor.withLock({ $0 }) { return body(monitor) }
        queue.async { body(self.started()) }
    }

    /// Returns the monitor. If it does not exist yet, it is created without blocking the caller's thread.
    func monitor() async -> PathMonitor {
        await withCheckedContinuation { continuation in withMonitor { continuation.resume(returning: $0) } }
    }

    /// Whether the monitor has been created.
    var isStarted: Bool { monitor.withLock { $0 != nil } }

    /// Looks up whether the addresses of a check are reachable now.
    ///
    /// - Parameters:
    ///   - check: The addresses to look up after a failed transfer.
    ///   - answer: Receives the verdict. Called once, on the monitor's thread, which it must not block.
    func evaluate(
        _ check: OfflineCheck,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        withMonitor { monitor in
            switch check {
            case .host(let addresses, let port): monitor.lookUp(addresses, port: port, answer: answer)
            case .general: monitor.lookUp(nil, answer: answer)
            }
        }
    }

    private func started() -> PathMonitor {
        if let monitor = monitor.withLock({ $0 }) { return monitor }
        let made = make()
        monitor.withLock { $0 = made }
        return made
    }
}

/// The addresses for which a route is looked up after a failed transfer. If none of them has a route, the transfer
/// failed because there was no network.
enum OfflineCheck: Hashable, Sendable {
    /// All known addresses of the host, and the port of the connection.
    case host([IPAddress], port: UInt16?)
    /// No address of the host is known. `PathTarget.general`, which stands for the internet, is looked up instead.
    case general

    /// Creates the check for a failed transfer. Returns `nil` if the cause cannot be a missing network, for example
    /// because the host has responded.
    ///
    /// - Parameters:
    ///   - failure: The failure of the transfer.
    ///   - url: The URL that failed.
    ///   - metrics: The transfer's metrics, with the addresses that the host's name was resolved to. Over a reused
    ///     connection no name was resolved, and the address of the connection is looked up.
    init?(_ failure: TransferFailure, _ url: URL, _ metrics: TransferMetrics) {
        guard failure.mayBeOffline, let host = url.host, !NameResolver.isLocalhost(host) else { return nil }
        let connected = metrics.remoteAddress.flatMap { IPAddress($0) }
        let resolved = metrics.addresses.isEmpty ? [connected].compactMap(\.self) : metrics.addresses
        let known = IPAddress(host).map { [$0] } ?? resolved
        let port = url.effectivePort.flatMap { UInt16(exactly: $0) }
        self = known.isEmpty ? .general : .host(known, port: port)
    }
}

extension TransferFailure {
    /// Whether a missing network may be the cause, if no response has begun: the name lookup failed, no connection was
    /// established, or the connection failed later.
    fileprivate var mayBeOffline: Bool {
        switch code {
        // CURLE_COULDNT_RESOLVE_HOST
        case 6: true
        // CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR. A host that refuses or resets a connection is
        // reachable.
        case 7, 55, 56: ![ECONNREFUSED, ECONNRESET].contains(osErrno)
        // CURLE_OPERATION_TIMEDOUT
        case 28: phase == .resolve || phase == .connect
        default: false
        }
    }
}

extension TransferFailure {
    /// Returns the failure with the monitor's words for a `prohibit` or `blackhole` route, if the kernel has no route.
    ///
    /// For these routes, connect(2) returns errors with misleading texts: "Permission denied" and "Invalid argument". The
    /// error number alone does not suffice, because a security module or a router can cause it, too.
    func explained(by verdict: PathStatus.Verdict) -> TransferFailure {
        guard verdict.isOffline == true else { return self }
        var failure = self
        for attempt in connectionAttempts where attempt.error?.call == "connect" {
            let reason: PathStatus.Reason
            switch attempt.error?.errno {
            case EACCES: reason = .prohibited
            case EINVAL: reason = .blackhole
            default: continue
            }
            failure.message = failure.message.replacingOccurrences(
                of: attempt.description,
                with: "\(attempt.address): \(reason)"
            )
        }
        return failure
    }
}

extension PathStatus.Verdict {
    /// Whether the kernel has no route; `nil` if the kernel could not be queried.
    var isOffline: Bool? {
        switch self {
        case .reachable: false
        case .notReachable: true
        case .unknown: nil
        }
    }
}
