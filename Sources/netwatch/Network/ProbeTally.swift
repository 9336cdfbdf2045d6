internal import NetwatchService
internal import NetworkReachability

/// The numbers of probes of a host, and the latencies of those that succeeded.
struct ProbeTally {
    private var count = 0
    private var successes = 0
    private var latencies = LatencyHistogram()

    mutating func record(_ result: ProbeResult) {
        count += 1
        guard result.validation == .valid else { return }
        successes += 1
        if let latency = result.latency { latencies.add(latency) }
    }

    /// `21 probes, 19 ok, p50 12.6 ms, p95 14.8 ms`; `nil` without a probe.
    var summary: String? {
        guard count > 0 else { return nil }
        let quantiles = [("p50", 0.5), ("p95", 0.95)].compactMap { name, part in
            latencies.quantile(part).map { "\(name) \(TextFormat.latency($0 / .milliseconds(1)))" }
        }
        return (["\(CountText.format(count, "probe")), \(successes) ok"] + quantiles).joined(separator: ", ")
    }
}
