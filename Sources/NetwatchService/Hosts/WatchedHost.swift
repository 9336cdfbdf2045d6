package import ClientCore
package import NetworkReachability
package import OfflineQueue

/// A host that the service probes at an interval, and how it decides whether the host is up.
package struct WatchedHost: Hashable, Sendable {
    /// What a probe does.
    package enum Check: Hashable, Sendable {
        /// Sends a GET request to an `http` or `https` URL. The host is up if the response has one of these statuses.
        case web(url: String, expectedStatus: ClosedRange<Int>)
        /// Connects to a TCP port and closes the connection.
        case tcp(NetworkHost, port: UInt16)
        /// Sends nothing. The host is up while the kernel has a route to it.
        case route(NetworkHost)
    }

    /// The accepted intervals: 1 s to 1 day.
    package static let acceptedIntervals: ClosedRange<Duration> = .seconds(1)...Duration.seconds(86_400)
    /// The accepted timeouts: 10 ms to 60 s, the range of the probes.
    package static let acceptedTimeouts = TCPProbe.acceptedTimeouts
    /// The accepted values of ``fall`` and ``rise``: 1 to 100.
    package static let acceptedThresholds = 1...100
    /// The maximum length of a name: 64 bytes.
    package static let longestName = 64

    /// The name of the host in outputs, metrics and URLs; see ``isValidName(_:)``.
    package var name: String
    package var check: Check
    /// The version of HTTP of the probes of a URL, and of the queue's requests to its origin that do not have their own.
    /// Default: `nil`, none is set for a host with this origin.
    package var httpVersion: HTTPVersion?
    /// The time from the end of a probe to the start of the next one, ±10 %. Default: 30 s.
    package var interval: Duration
    /// The time limit of a probe. Default: 5 s.
    package var timeout: Duration
    /// The number of consecutive failed probes after which the host is down. Default: 3.
    package var fall: Int
    /// The number of consecutive successful probes after which the host is up again. Default: 2.
    package var rise: Int

    package init(name: String, check: Check, defaults: HostDefaults = HostDefaults()) {
        self.name = name
        self.check = check
        interval = defaults.interval
        timeout = defaults.timeout
        fall = defaults.fall
        rise = defaults.rise
    }

    /// What is checked, for people: the URL without its secrets, `tcp HOST:PORT` or `route HOST`.
    package var checkText: String {
        switch check {
        case .web(let url, _): RedactedURL.text(of: url)
        case .tcp(let host, let port): "tcp \(host.text.contains(":") ? "[\(host)]" : host.text):\(port)"
        case .route(let host): "route \(host)"
        }
    }

    /// Whether a text can be a name: 1 to 64 ASCII letters, digits, `.`, `_`, `-` and `:`, the first one a letter or digit.
    package static func isValidName(_ text: String) -> Bool {
        guard let first = text.utf8.first, text.utf8.count <= longestName, isAlphanumeric(first) else {
            return false
        }
        return text.utf8.allSatisfy { isAlphanumeric($0) || "._-:".utf8.contains($0) }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

/// The settings of the hosts that do not have their own.
package struct HostDefaults: Hashable, Sendable {
    /// See ``WatchedHost/interval``.
    package var interval: Duration = PathValidator.defaultInterval
    /// See ``WatchedHost/timeout``.
    package var timeout: Duration = .seconds(5)
    /// See ``WatchedHost/fall``.
    package var fall = 3
    /// See ``WatchedHost/rise``.
    package var rise = 2

    package init() {}
}

extension WatchedHost {
    /// The origins whose server responds if the host's probe succeeds: that of the URL, or those with the host and the
    /// TCP port. Empty if the check sends nothing.
    package var origins: [Origin] {
        switch check {
        case .web(let url, _): return [try? Origin(url: url)].compactMap(\.self)
        case .tcp(let host, let port):
            guard let host = Origin.host(named: host.text) else { return [] }
            return ["http", "https"].map { Origin(scheme: $0, host: host, port: Int(port)) }
        case .route: return []
        }
    }
}
