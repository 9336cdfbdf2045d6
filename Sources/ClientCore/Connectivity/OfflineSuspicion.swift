internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

extension TransferFailure {
    /// What has to be out of reach for this failure to be that of having no network; `nil` when it is none, or
    /// when the code says it by itself.
    ///
    /// - Parameters:
    ///   - url: The URL that failed.
    ///   - address: The address that the connection was to go to, if that is known.
    func suspectedTarget(_ url: URL, address: String?) -> PathTarget? {
        guard mayBeOffline, let host = url.host, !host.isLocalName else { return nil }
        guard let literal = address ?? (IPAddress(host) == nil ? nil : host) else { return .general }
        return NetworkHost(literal).map(PathTarget.host)
    }

    /// Whether it happened before anybody has answered: no address was found, or no connection made.
    private var mayBeOffline: Bool {
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
    /// Whether the kernel says that there is no way; not when it could not be asked.
    var isNotReachable: Bool {
        if case .notReachable = self { true } else { false }
    }
}
