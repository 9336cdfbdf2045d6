internal import ClientCore
internal import FoundationEssentials
internal import NetwatchEventLoop
internal import NetworkReachability

/// Watches and probes one host until it is released.
final class HostWatch: Sendable {
    private let watch: any Sendable
    private let recheck: @Sendable () -> Void

    /// - Parameters:
    ///   - report: Called with each observation, on a thread that it must not block. The calls do not overlap.
    /// - Throws: ``InvalidProbe`` or ``InvalidHost`` if the host's check is not valid.
    init(
        _ host: WatchedHost,
        monitor: PathMonitor,
        report: @escaping @Sendable (HostReport) -> Void
    ) throws {
        let target = PathTarget.host(try host.networkHost)
        guard let probe = try host.probe else {
            watch = monitor.watch(target) { report(HostReport(route: $0)) }
            recheck = {}
            return
        }
        let last = LastStatus()
        let validator = PathValidator(monitor: monitor, target: target, probe: probe, interval: host.interval)
        {
            report(HostReport($0, isProbe: last.isRepeated(by: $0.status)))
        }
        watch = validator
        recheck = { validator.check() }
    }

    /// Probes the host again soon, instead of after its interval.
    func check() { recheck() }
}

/// The status that a validator delivered last. It delivers an equal status again only with a new probe result.
private final class LastStatus: @unchecked Sendable {
    // Used only in the validator's callback, whose calls do not overlap.
    private var status: PathStatus?

    func isRepeated(by new: PathStatus) -> Bool {
        defer { status = new }
        return status == new
    }
}

extension HostReport {
    /// The observation of a host that is not probed.
    fileprivate init(route status: PathStatus) {
        switch status.verdict {
        case .unknown(let reason): self = .unknown("\(reason)")
        case .notReachable(let reason): self = .noPath("\(reason)")
        case .reachable: self = .success(latency: nil)
        }
    }

    /// - Parameter isProbe: Whether the status was delivered because a probe ended.
    fileprivate init(_ validated: ValidatedStatus, isProbe: Bool) {
        switch validated.status.verdict {
        case .unknown(let reason): self = .unknown("\(reason)")
        case .notReachable(let reason): self = .noPath("\(reason)")
        case .reachable:
            guard isProbe, let probe = validated.probe else {
                self = .path
                return
            }
            switch probe.validation {
            case .none: self = .path
            case .valid: self = .success(latency: probe.latency)
            case .captive: self = .captive("\(probe.validation)")
            case .failed(let reason): self = .failure(reason)
            }
        }
    }
}

extension WatchedHost {
    /// The maximum length of the response to a probe: 1 MiB. A longer response fails the probe.
    private static let longestResponse = 1 << 20

    /// The host whose path is watched.
    var networkHost: NetworkHost {
        get throws {
            switch check {
            case .tcp(let host, _), .route(let host): host
            case .web(let url, _):
                try NetworkHost(validating: URL(string: url)?.host(percentEncoded: false) ?? url)
            }
        }
    }

    /// The probe of the check; `nil` if the check sends nothing.
    var probe: (any Probe)? {
        get throws {
            switch check {
            case .route: nil
            case .tcp(_, let port): TCPProbe(port: port, timeout: timeout)
            case .web(let url, let status):
                try HTTPProbe(
                    url: url,
                    expectedStatus: status,
                    timeout: timeout,
                    maximumBodySize: Self.longestResponse,
                    httpVersion: httpVersion ?? .http2
                )
            }
        }
    }
}
