internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

/// What has to be out of reach for a failure to be that of having no network.
enum OfflineSuspicion: Hashable, Sendable {
    /// All of the addresses that the host has.
    case host([IPAddress])
    /// Everything: nobody knows where the host is.
    case general

    /// `nil` for everything.
    var addresses: [IPAddress]? {
        switch self {
        case .host(let addresses): addresses
        case .general: nil
        }
    }

    /// - Parameters:
    ///   - failure: How the transfer failed; there is nothing to suspect when somebody has answered.
    ///   - url: The URL that failed.
    ///   - addresses: What its host's name was looked up to.
    init?(_ failure: TransferFailure, _ url: URL, addresses: [IPAddress]) {
        guard failure.mayBeOffline, let host = url.host, !host.isLocalName else { return nil }
        let known = IPAddress(host).map { [$0] } ?? addresses
        self = known.isEmpty ? .general : .host(known)
    }
}

extension TransferFailure {
    /// Whether it happened before anybody has answered: no address was found, or no connection made.
    fileprivate var mayBeOffline: Bool {
        switch code {
        // CURLE_COULDNT_RESOLVE_HOST
        case 6: true
        // CURLE_COULDNT_CONNECT. Who refuses a connection is there.
        case 7: ![ECONNREFUSED, ECONNRESET].contains(osErrno)
        // CURLE_OPERATION_TIMEDOUT
        case 28: phase == .resolve || phase == .connect
        default: false
        }
    }
}

extension String {
    /// Names of this machine need no network (RFC 6761 §6.3).
    fileprivate var isLocalName: Bool {
        let name = lowercased()
        return name == "localhost" || name.hasSuffix(".localhost")
    }
}

extension PathStatus.Verdict {
    /// Whether the kernel says that there is no way; `nil` when it could not be asked.
    var isOffline: Bool? {
        switch self {
        case .reachable: false
        case .notReachable: true
        case .unknown: nil
        }
    }
}
