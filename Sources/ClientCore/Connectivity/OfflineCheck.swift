internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

/// The destinations that must be unreachable for a failure to mean that there is no network.
enum OfflineCheck: Hashable, Sendable {
    /// All known addresses of the host.
    case host([IPAddress])
    /// Every destination, because the host's address is not known.
    case general

    /// The addresses; `nil` for every destination.
    var addresses: [IPAddress]? {
        switch self {
        case .host(let addresses): addresses
        case .general: nil
        }
    }

    /// Returns `nil` if a missing network cannot be the cause, for example because a host has answered.
    ///
    /// - Parameters:
    ///   - failure: The failure of the transfer.
    ///   - url: The URL that failed.
    ///   - addresses: The addresses that the host's name was resolved to.
    init?(_ failure: TransferFailure, _ url: URL, addresses: [IPAddress]) {
        guard failure.mayBeOffline, let host = url.host, !host.isLocalName else { return nil }
        let known = IPAddress(host).map { [$0] } ?? addresses
        self = known.isEmpty ? .general : .host(known)
    }
}

extension TransferFailure {
    /// Whether the transfer failed before any host answered: no address was found, or no connection was made.
    fileprivate var mayBeOffline: Bool {
        switch code {
        // CURLE_COULDNT_RESOLVE_HOST
        case 6: true
        // CURLE_COULDNT_CONNECT. A host that refuses a connection is reachable.
        case 7: ![ECONNREFUSED, ECONNRESET].contains(osErrno)
        // CURLE_OPERATION_TIMEDOUT
        case 28: phase == .resolve || phase == .connect
        default: false
        }
    }
}

extension String {
    /// Whether the name refers to this machine, which needs no network (RFC 6761 §6.3).
    fileprivate var isLocalName: Bool {
        let name = lowercased()
        return name == "localhost" || name.hasSuffix(".localhost")
    }
}

extension PathStatus.Verdict {
    /// Whether the kernel has no route; `nil` if it could not be asked.
    var isOffline: Bool? {
        switch self {
        case .reachable: false
        case .notReachable: true
        case .unknown: nil
        }
    }
}
